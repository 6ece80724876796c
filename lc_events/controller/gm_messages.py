"""GM's messages: resources that it inserts, updates and deletes, and the reports that it confirms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from lc_events.application.chain import event_id
from lc_events.application.known import identify
from lc_events.controller.intake import Desk, Message, MessageWork
from lc_events.controller.transaction import Transaction
from lc_events.domain.dataset import confirm_dataset_reports, duplicate_dataset_message, receive_dataset_message
from lc_events.domain.decisions import Facts, confirm_reports, receive_duplicate, receive_gm_message
from lc_events.domain.job import JobState
from lc_events.errors import RefusedError
from lc_events.messages.gm import read_acknowledgement, read_down
from lc_events.messages.names import DATASET_KIND, JOB_KIND, stream_id
from lc_events.messages.resources import Dataset, LifelongLearningJob, below
from lc_events.messages.secrets import separate

__all__ = ["AcknowledgementWork", "ResourceWork"]

_EVENT_ID = re.compile(r"([^/]+)/([^/]+/([^/]+)/[^/]+)/([1-9][0-9]{0,17})-[0-9a-f]{12}")


class ResourceWork(MessageWork):
    """An insert, update or delete; secrets are put aside before anything else sees the resource."""

    def __init__(self, desk: Desk, message: Message) -> None:
        """RefusedError if the message is not one of CONTRACT section 3."""
        super().__init__(desk, message)
        topic = message.topic
        down = read_down(message.received.payload, kind=topic.resource_kind, namespace=topic.namespace, name=topic.name)
        content, self._secrets = separate(down.content)
        self._down = replace(down, content=content)
        described = {"operation": down.operation, "content": content}
        self.identity = identify(down.stream, down.id, described, dup=message.received.dup)

    def decide(self, transaction: Transaction) -> None:
        """Take the resource over; a delete of what was never here only clears what may be retained of it."""
        stream = self._down.stream
        transaction.then(lambda: self.desk.replies.refresh(stream))
        if self._down.kind == JOB_KIND:
            self._decide_job(transaction)
        else:
            self._decide_dataset(transaction)

    def _decide_job(self, transaction: Transaction) -> None:
        down = self._down
        job = transaction.job(down.stream)
        if self.is_repeat(transaction):
            self._keep_rotated_secrets(transaction)
            transaction.keep(receive_duplicate(job, down.id, None, self.message.now))
            self._report_again(transaction, transaction.job(down.stream))
            return
        note = None
        if isinstance(down.resource, LifelongLearningJob):
            self._check_output(transaction, down.resource)
            dataset = stream_id(down.namespace, DATASET_KIND, down.resource.spec.dataset.name)
            note = transaction.note_of(dataset)
        elif job.version == 0:
            return
        self._keep_secrets(transaction)
        facts = Facts(self.message.now, self.desk.zone, note, self.desk.model_places)
        transaction.keep(receive_gm_message(job, down, facts))
        self.remember(transaction)
        after = transaction.job(down.stream)
        if after.reports == job.reports:
            self._report_again(transaction, after)

    def _decide_dataset(self, transaction: Transaction) -> None:
        down = self._down
        dataset = transaction.dataset(down.stream)
        if self.is_repeat(transaction):
            self._keep_rotated_secrets(transaction)
            transaction.keep(duplicate_dataset_message(dataset, down.id, self.message.now))
            return
        if down.operation == "delete" and dataset.version == 0:
            return
        if isinstance(down.resource, Dataset):
            for job in transaction.jobs_of(down.stream):
                if below(down.resource.spec.url, job.output_dir):
                    words = f"url {down.resource.spec.url} lies below outputDir {job.output_dir} of {job.stream}"
                    raise RefusedError(words, code="conflict")
        self._keep_secrets(transaction)
        transaction.keep(receive_dataset_message(dataset, down, self.message.now))
        self.remember(transaction)

    def _keep_secrets(self, transaction: Transaction) -> None:
        """New secrets are on disk before the commit that may need them; they go only after the resource has."""
        stream, vault = self._down.stream, self.desk.vault
        if self._down.operation == "delete":
            puts = vault.puts(stream)
            transaction.then(lambda: vault.drop(stream, puts))
        else:
            vault.put(stream, self._secrets)

    def _keep_rotated_secrets(self, transaction: Transaction) -> None:
        """A message without an id that differs from the last in nothing but its secrets is a repeat, but for them."""
        identity = self.identity
        if identity is not None and not identity.has_id and not identity.dup:
            self._keep_secrets(transaction)

    def _check_output(self, transaction: Transaction, job: LifelongLearningJob) -> None:
        output_dir = job.spec.output_dir.rstrip("/")
        owner = transaction.owner_of(output_dir)
        if owner is None or owner == self._down.stream:
            owner = self._owner_behind_links(transaction, output_dir)
        if owner is not None and owner != self._down.stream:
            raise RefusedError(f"outputDir {output_dir} belongs to the live job {owner}", code="conflict")
        stream = stream_id(self._down.namespace, DATASET_KIND, job.spec.dataset.name)
        dataset = None if transaction.is_broken(stream) else transaction.dataset(stream)
        if dataset is not None and dataset.is_live and below(dataset.url, output_dir):
            raise RefusedError(f"dataset {dataset.url} lies below outputDir {output_dir}", code="conflict")

    def _owner_behind_links(self, transaction: Transaction, output_dir: str) -> str | None:
        """Another live job whose outputDir is the same folder by another name; looked for when the job's is new."""
        job = transaction.job(self._down.stream)
        if job.is_live and job.output_dir == output_dir:
            return None
        self.desk.settle(output_dir)
        place = self.desk.real_place(output_dir)
        others = (other for other in transaction.live_jobs() if other.stream != self._down.stream)
        return next((other.stream for other in others if self.desk.real_place(other.output_dir) == place), None)

    def _report_again(self, transaction: Transaction, job: JobState) -> None:
        """A waiting condition that was answered already gets its old report again."""
        report = None if job.waiting is None or not job.is_live else job.report_of(job.waiting)
        if report is not None:
            transaction.then(lambda: self.desk.replies.report_again(job.stream, report.version))


class AcknowledgementWork(MessageWork):
    """GM has these reports on its disk."""

    def __init__(self, desk: Desk, message: Message) -> None:
        """RefusedError if it is no list of ids."""
        super().__init__(desk, message)
        self._ids = read_acknowledgement(message.received.payload).ids

    def decide(self, transaction: Transaction) -> None:
        """Stop repeating them; ids that are not of this store's history are passed over."""
        said: dict[str, dict[int, str]] = {}
        for report_id in self._ids:
            match = _EVENT_ID.fullmatch(report_id)
            if match is None or match[3] not in (JOB_KIND, DATASET_KIND) or transaction.is_broken(match[2]):
                continue
            said.setdefault(match[2], {})[int(match[4])] = report_id
        for stream, ids in said.items():
            self._confirm(transaction, stream, ids)

    def _confirm(self, transaction: Transaction, stream: str, ids: Mapping[int, str]) -> None:
        """Only ids whose hash is that of our event count: a restored store has other events at the same versions."""
        hashes = self.desk.event_hashes(stream, sorted(ids))
        node = self.desk.node
        confirmed = [v for v, hash_ in hashes.items() if event_id(node, stream, v, hash_) == ids[v]]
        now = self.message.now
        if f"/{JOB_KIND}/" in stream:
            transaction.keep(confirm_reports(transaction.job(stream), confirmed, now))
        else:
            transaction.keep(confirm_dataset_reports(transaction.dataset(stream), confirmed, now))
