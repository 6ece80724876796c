"""Which data made a model: `provenance`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lc_events.cli.output import Format, print_json, print_lines, table
from lc_events.cli.reading import Config, Job, Output, Store, open_archive, zone
from lc_events.errors import IntegrityError, NotFoundError, StorageError

if TYPE_CHECKING:
    from lc_events.application.audit.archive import Archive
    from lc_events.application.audit.provenance import Provenance
    from lc_events.cli.job_storage import JobStorage
    from lc_events.messages.json import Json, JsonObject

__all__ = ["family"]

family = typer.Typer()


class CheckedFile(NamedTuple):
    """A file of a round as it is now: `state` is `ok`, `missing`, `changed`, `unreadable` or `replaced`."""

    what: str
    url: str
    state: str
    detail: str | None = None


@family.command()
def provenance(
    job: Job,
    *,
    round_: Annotated[int, typer.Option("--round", metavar="N", min=1, help="Number of the training trigger.")],
    generation: Annotated[
        int | None, typer.Option(metavar="G", min=1, help="Which life of the name; the newest that has the round.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare the files where they lie now.")] = False,
    root: Annotated[
        Path | None, typer.Option("--root", metavar="DIR", help="Prefix of local paths, for --check. [LC_ROOT]")
    ] = None,
    store: Store = None,
    config: Config = None,
    output: Output = Format.TABLE,
) -> None:
    """Say which records, files and model a round consists of, with their hashes."""
    from lc_events.application.audit.controller import require_job_of_controller
    from lc_events.application.audit.provenance import provenance as looked_up

    with open_archive(store, config) as archive:
        stream = archive.find(job)
        require_job_of_controller(archive.kind, stream, "provenance")
        found = looked_up(list(archive.journal.stream(stream)), round_, generation)
        storage = _storage(archive, stream, root, store, config) if check else None
    checked = None if storage is None else _check(found, storage)
    if output is Format.TABLE:
        print_lines(_told(found, checked))
    else:
        files: dict[str, Json] = {} if checked is None else {"checked": [each._asdict() for each in checked]}
        print_json({**found.to_json(), **files}, output)
    _fail_if_wrong(checked or [])


def _told(found: Provenance, checked: list[CheckedFile] | None) -> Iterator[str]:
    """The records that went in, then the files that came of them."""
    from lc_events.cli.moments import show_time

    decided = show_time(found.train.time, zone())[:19]
    yield f"Round {found.round} of generation {found.generation}, decided {decided} by version {found.train.version}"
    yield ""
    parts = [("train", found.train), *([("eval", found.eval)] if found.eval is not None else [])]
    records = [
        (what, part.dataset, part.epoch, *part.rows, part.rows[1] - part.rows[0], part.version, part.url)
        for what, file in parts
        for part in file.records
    ]
    yield from table(("FOR", "DATASET", "FILE", "FROM", "BEFORE", "RECORDS", "VERSION", "URL"), records)
    yield ""
    states = {(each.what, each.url): each for each in checked or ()}
    rows = []
    for what, url, recorded in _files(found):
        state = states.get((what, url))
        compared = () if checked is None else ("-", "") if state is None else (state.state, state.detail or "")
        rows.append((what, recorded["size"], str(recorded["sha256"])[:12], url, *compared))
    yield from table(("FILE", "BYTES", "SHA256", "URL", *(() if checked is None else ("STATE", "DETAIL"))), rows)


def _files(found: Provenance) -> list[tuple[str, str, JsonObject]]:
    """What each file is for, its URL, and size and hash as recorded."""
    files = [("train", str(file["url"]), file) for file in found.train.files]
    files += [("eval", str(file["url"]), file) for file in (found.eval.files if found.eval is not None else ())]
    if (model := found.model) is not None:
        files += [("model", str(model["source"]), model), ("deployed", str(model["url"]), model)]
    return files


def _storage(
    archive: Archive[Any], stream: str, root: Path | None, store: str | None, config: Path | None
) -> JobStorage:
    from lc_events.cli.job_storage import JobStorage

    return JobStorage.of(archive, archive.state(stream), root=root, store=store, config=config)


def _check(found: Provenance, storage: JobStorage) -> list[CheckedFile]:
    return [
        CheckedFile(what, url, "replaced", f"by version {found.replaced[url]}")
        if url in found.replaced
        else _checked(what, url, recorded, storage)
        for what, url, recorded in _files(found)
    ]


def _checked(what: str, url: str, recorded: JsonObject, storage: JobStorage) -> CheckedFile:
    try:
        place = storage.storage(url)
        size, sha256 = place.stat(url).size, place.sha256(url)
    except StorageError as error:
        return CheckedFile(what, url, "missing" if error.missing else "unreadable", storage.explain(url, error))
    if (size, sha256) == (recorded["size"], recorded["sha256"]):
        return CheckedFile(what, url, "ok")
    return CheckedFile(
        what,
        url,
        "changed",
        f"{size} bytes, sha256 {sha256[:12]}; recorded are {recorded['size']} bytes, {str(recorded['sha256'])[:12]}",
    )


def _fail_if_wrong(checked: list[CheckedFile]) -> None:
    """Exit code 5 for a changed file; for one that is gone or cannot be read 3, since it proves nothing."""
    changed = [each.url for each in checked if each.state == "changed"]
    gone = [each.url for each in checked if each.state in ("missing", "unreadable")]
    if changed:
        raise IntegrityError(f"these files are not what was recorded: {', '.join(changed)}")
    if gone:
        raise NotFoundError(f"these files cannot be compared: {', '.join(gone)}")
