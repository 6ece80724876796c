"""All checks in their order; one that fails stops none of the others, and those that rest on it are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from lc_events.application.journal import STORE_ERRORS, Journal
from lc_events.controller.locations import Locations
from lc_events.controller.world import World
from lc_events.doctor.clock import Watch, check_clock, check_zone
from lc_events.doctor.connection import check_broker, check_session, check_tls
from lc_events.doctor.data import check_datasets, check_outputs, check_places
from lc_events.doctor.finding import Finding, Level, skipped, wrong
from lc_events.doctor.folder import check_disks, check_file_system, check_folder, check_quarantine, holder
from lc_events.doctor.jobs import check_effects, check_reports
from lc_events.doctor.retained import (
    Retained,
    check_controller,
    check_heads,
    check_leftovers,
    check_link,
    check_nodes,
    look,
)
from lc_events.doctor.rights import check_rights
from lc_events.doctor.spools import check_spools
from lc_events.doctor.store import check_chain, check_store, is_controllers, missing_store, opened
from lc_events.doctor.subject import Subject, check_settings
from lc_events.errors import LcError
from lc_events.messages.resources import is_s3
from lc_events.mqtt.settings import MqttSettings
from lc_events.runtime.vault import SECRETS_FILE, Vault
from lc_events.settings.programs import LcSettings

__all__ = ["examine"]

_S3_SECONDS = 5.0

Check = Callable[[], Iterable[Finding]]


def examine(subject: Subject) -> Iterator[Finding]:
    """Examine a program's surroundings, one finding a line, as they come; nothing is written to the store."""
    examination = _Examination(subject)
    try:
        for name, check in examination.checks():
            try:
                yield from check()
            except STORE_ERRORS as error:
                yield wrong(name, f"the store cannot be read: {error}", "see `lc-events verify`; restore a copy")
            except LcError as error:
                yield wrong(name, str(error), "correct what the message names")
            except Exception as error:  # noqa: BLE001 - the other lines are wanted all the same
                yield wrong(name, f"could not be checked: {error!r:.300}", "report this, please")
    finally:
        examination.close()


class _Examination:
    """What the checks have found out so far; None where it could not be had."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._began = Watch.now()
        self._mqtt: MqttSettings | None = None
        self._journal: Journal | None = None
        self._world: World | None = None
        self._seen: Retained | None = None

    def checks(self) -> list[tuple[str, Check]]:
        """Name and check, in the order in which one rests on the other."""
        subject, settings = self._subject, self._subject.settings
        process = holder(settings.state_dir)
        common: list[tuple[str, Check]] = [
            ("settings", lambda: check_settings(subject)),
            ("state folder", lambda: check_folder(settings.state_dir, process)),
            ("store", self._store),
            ("chain", self._chain),
            ("disk", self._disk),
            ("file system", lambda: check_file_system(settings.store)),
            ("broker", self._broker),
            self._at_broker("tls", check_tls),
            self._at_broker("session", check_session),
            self._at_broker("acl", lambda mqtt: check_rights(mqtt, subject.topics, subject.node)),
            ("retained", self._look),
        ]
        if not isinstance(settings, LcSettings):
            return [*common, self._at_retained("nodes", check_nodes), ("clock", self._clock)]
        node, zone, is_set = settings.node, settings.timezone, "timezone" in settings.model_fields_set
        return [
            *common,
            self._at_broker("controller", lambda mqtt: self._controller(mqtt, node, process)),
            self._at_retained("link", lambda seen: check_link(seen, node)),
            self._at_retained("heads", self._heads),
            self._at_retained("leftovers", lambda seen: check_leftovers(seen, node, self._world)),
            ("clock", self._clock),
            ("zone", lambda: check_zone(zone, self._world, is_set=is_set)),
            self._at_world("datasets", lambda world: check_datasets(world, self._locations(world, settings))),
            self._at_world("spool", lambda world: self._spools(world, settings)),
            self._at_world("s3", lambda world: check_outputs(world, self._locations(world, settings))),
            ("model places", lambda: self._places(settings)),
            self._at_world("reports", lambda world: check_reports(world, datetime.now(UTC))),
            self._at_world("effects", self._effects),
            ("quarantine", lambda: check_quarantine(settings.state_dir / "quarantine")),
        ]

    def close(self) -> None:
        """Let the store go."""
        if self._journal is not None:
            self._journal.close()

    def _at_broker(self, name: str, check: Callable[[MqttSettings], Iterable[Finding]]) -> tuple[str, Check]:
        return name, lambda: [skipped(name, "needs the broker")] if self._mqtt is None else check(self._mqtt)

    def _at_retained(self, name: str, check: Callable[[Retained], Iterable[Finding]]) -> tuple[str, Check]:
        return name, lambda: [skipped(name, "needs what the broker keeps")] if self._seen is None else check(self._seen)

    def _at_world(self, name: str, check: Callable[[World], Iterable[Finding]]) -> tuple[str, Check]:
        return name, lambda: [skipped(name, "needs the store")] if self._world is None else check(self._world)

    def _store(self) -> Iterator[Finding]:
        path, node = self._subject.settings.store, self._subject.node
        if not path.exists():
            yield missing_store(path, is_named=self._subject.is_named)
            return
        journal = opened(path)
        yield from check_store(journal, node)
        if node is not None and not is_controllers(journal.rows):
            yield wrong("store", f"{path} is a global manager's", "set LC_STATE_DIR, or examine it with GM_STATE_DIR")
        self._journal = journal

    def _chain(self) -> Iterator[Finding]:
        if self._journal is None:
            yield skipped("chain", "needs the store")
            return
        yield from check_chain(self._journal.rows)
        if self._subject.node is not None and is_controllers(self._journal.rows):
            self._world = World.load(self._journal)

    def _disk(self) -> Iterator[Finding]:
        settings = self._subject.settings
        folders = [settings.state_dir, settings.store.parent]
        if isinstance(settings, LcSettings) and self._world is not None:
            outputs = [job.output_dir for job in self._world.jobs() if job.is_live and not is_s3(job.output_dir)]
            folders += [settings.root / output.lstrip("/") for output in outputs]
        yield from check_disks(folders)

    def _broker(self) -> Iterator[Finding]:
        mqtt = self._subject.mqtt
        if isinstance(mqtt, str):
            yield wrong(
                "broker", mqtt, "correct the setting that it names; an internal broker comes with its controller"
            )
            return
        found = list(check_broker(mqtt))
        yield from found
        if all(finding.level is not Level.WRONG for finding in found):
            self._mqtt = mqtt

    def _look(self) -> Iterator[Finding]:
        """Says nothing where all is well: what is retained is looked at by the checks that follow."""
        if self._mqtt is not None:
            self._seen = look(self._mqtt, self._subject.topics, self._subject.node)
        yield from ()

    def _controller(self, mqtt: MqttSettings, node: str, process: str | None) -> Iterable[Finding]:
        if self._seen is None:
            return [skipped("controller", "needs what the broker keeps")]
        return check_controller(mqtt, self._seen, node, process)

    def _heads(self, seen: Retained) -> Iterable[Finding]:
        if self._journal is None or self._world is None:
            return [skipped("heads", "needs the store")]
        return check_heads(seen, self._journal)

    def _clock(self) -> Iterator[Finding]:
        rows = None if self._journal is None else self._journal.rows
        try:
            yield from check_clock(self._began, self._seen, rows)
        except STORE_ERRORS:  # told by the checks of the store
            yield skipped("clock", "needs the store")

    def _spools(self, world: World, settings: LcSettings) -> Iterable[Finding]:
        if self._journal is None:
            return [skipped("spool", "needs the store")]
        return check_spools(world, self._journal, settings.state_dir / "spool")

    def _effects(self, world: World) -> Iterable[Finding]:
        if self._journal is None:
            return [skipped("effects", "needs the store")]
        return check_effects(world, self._journal, datetime.now(UTC))

    def _places(self, settings: LcSettings) -> Iterable[Finding]:
        """Folders can be looked at without a store, too."""
        world = World() if self._world is None else self._world
        return check_places(settings.model_places, world, self._locations(world, settings))

    @staticmethod
    def _locations(world: World, settings: LcSettings) -> Locations:
        """As the controller sees them, but a silent S3 server is not waited for as long."""
        seconds = min(_S3_SECONDS, settings.s3_timeout_seconds)
        vault = Vault(settings.state_dir / SECRETS_FILE)
        return Locations.of_settings(settings.model_copy(update={"s3_timeout_seconds": seconds}), world, vault.get)
