"""Files as people and programs write them, followed by a running controller: counted samples survive all of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.invariants import assert_invariants
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm
from support.waiting import eventually

NEVER = {"condition": {"operator": ">", "threshold": 10**9, "metric": "num_of_samples"}}
ALWAYS = {"condition": {"operator": ">", "threshold": 0, "metric": "num_of_samples"}}


@pytest.fixture(scope="module")
def shared(shared_mosquitto, tmp_path_factory) -> Iterator[ControllerProcess]:
    """One controller for all of these files, each of which is a dataset with a job of its own."""
    folder = tmp_path_factory.mktemp("world")
    port = shared_mosquitto.port
    with ControllerProcess(folder, port=port, topic_root="worldfiles", dataset_seconds=0.6) as controller:
        yield controller
        assert_invariants(controller)


class Followed:
    """A dataset and its job; `expect` waits for records in the file now, and for samples ever counted."""

    def __init__(self, lc: ControllerProcess, name: str, format_: str) -> None:
        self.lc = lc
        self.name = name
        self.url = f"/data/{name}/file.{format_.lower()}"
        self.path: Path = lc.file(self.url)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._gm = PlayedGm(lc, with_ids=False)
        self._format = format_

    def insert(self, trigger: dict = NEVER) -> None:
        self._gm.dataset(self.name, url=self.url, format_=self._format)
        self._gm.job(f"job-{self.name}", dataset=self.name, train_prob=1.0, trigger=trigger)

    def append(self, data: bytes | str) -> None:
        with self.path.open("ab") as file:
            file.write(data.encode() if isinstance(data, str) else data)

    def expect(self, records: int, seen: int) -> None:
        def numbers() -> tuple[int, int] | None:
            dataset = self.lc.latest(f"state/{{node}}/datasets/default/{self.name}")
            job = self.lc.job(f"job-{self.name}")
            return (dataset["samples"], job["samples"]["seen"]) if dataset and job else None

        try:
            eventually(lambda: numbers() == (records, seen))
        except AssertionError:
            raise AssertionError(f"{numbers()} is not {(records, seen)}, {self.error()}") from None

    def error(self) -> str | None:
        dataset = self.lc.latest(f"state/{{node}}/datasets/default/{self.name}")
        return dataset and dataset["error"]

    def trained(self, round_: int = 1) -> bytes:
        file = self.lc.file(f"/output/job-{self.name}/data/train/{round_}/data.{self._format.lower()}")
        eventually(file.exists)
        return file.read_bytes()


@pytest.fixture
def follow(shared, request) -> Callable[..., Followed]:
    def begin(data: bytes | str, format_: str = "txt", trigger: dict = NEVER) -> Followed:
        name = request.node.name.removeprefix("test_").replace("_", "-").replace("[", "-").replace("]", "")[:50]
        followed = Followed(shared, name.strip("-").lower(), format_)
        followed.append(data)
        followed.insert(trigger)
        return followed

    return begin


def test_windows_line_ends_and_a_byte_order_mark_are_not_passed_on(follow):
    file = follow(b"\xef\xbb\xbfa 1\r\nb 2\r\n\r\n", trigger=ALWAYS)
    file.expect(3, 3)
    assert file.trained() == b"a 1\nb 2\n\n"


def test_quoted_newlines_are_inside_of_a_record(follow):
    file = follow('x,y\n1,"two\nlines"\n2,"say ""so"""\n', "CSV", ALWAYS)
    file.expect(2, 2)
    assert file.trained() == b'x,y\n1,"two\nlines"\n2,"say ""so"""\n'


def test_an_unbalanced_quote_is_an_error_with_its_place_until_it_is_mended(follow):
    file = follow("x\n1\n", "csv")
    file.expect(1, 1)
    file.append('"never closed\n2\n3\n')
    eventually(lambda: file.error() is not None)
    assert "byte 4" in (file.error() or "")
    assert file.lc.job(f"job-{file.name}")["samples"]["seen"] == 1
    file.append('and now it is"\n4\n')
    file.expect(3, 3)
    assert file.error() is None


def test_a_last_line_without_its_end_counts_once_it_stands_still_and_its_rest_is_a_record(follow):
    file = follow("a\nb")
    file.expect(2, 2)
    file.append("ig\nc\n")
    file.expect(4, 4)


def test_lines_of_megabytes_are_records_like_others(follow):
    file = follow("x" * 3_000_000 + "\nshort\n", trigger=ALWAYS)
    file.expect(2, 2)
    assert len(file.trained()) == 3_000_007


def test_rounds_of_a_csv_never_mix_two_headers(follow):
    file = follow("a,b\n1,2\n", "csv")
    file.expect(1, 1)
    file.path.write_text("c,d\n3,4\n5,6\n")
    file.expect(2, 3)
    PlayedGm(file.lc, with_ids=False).job(f"job-{file.name}", dataset=file.name, train_prob=1.0, trigger=ALWAYS)
    assert file.trained() == b"a,b\n1,2\n"


def test_what_is_appended_while_it_is_read_counts_once(follow):
    file = follow("".join(f"{n}\n" for n in range(50_000)))
    for start in range(50_000, 60_000, 100):
        file.append("".join(f"{n}\n" for n in range(start, start + 100)))
    file.expect(60_000, 60_000)


def test_a_file_that_shrinks_holds_new_samples(follow):
    file = follow("1\n2\n3\n4\n")
    file.expect(4, 4)
    file.path.write_text("5\n6\n")
    file.expect(2, 6)


def test_a_file_that_is_emptied_and_filled_again_holds_new_samples(follow):
    file = follow("1\n2\n3\n")
    file.expect(3, 3)
    os.truncate(file.path, 0)
    file.expect(0, 3)
    file.append("4\n5\n")
    file.expect(2, 5)


def test_a_file_of_the_same_size_in_its_place_holds_new_samples(follow):
    file = follow("1\n2\n3\n")
    file.expect(3, 3)
    other = file.path.with_name("other")
    other.write_text("7\n8\n9\n")
    other.replace(file.path)
    file.expect(3, 6)


def test_an_editor_that_saves_by_renaming_a_longer_copy_adds_only_what_is_new(follow):
    file = follow("1\n2\n")
    file.expect(2, 2)
    other = file.path.with_name("other")
    other.write_text("1\n2\n3\n")
    other.replace(file.path)
    file.expect(3, 3)


def test_a_file_that_is_deleted_and_comes_back_as_it_was_is_the_same_file(follow):
    file = follow("1\n2\n")
    file.expect(2, 2)
    moved = file.path.with_name("moved")
    file.path.rename(moved)
    eventually(lambda: file.error() is not None)
    moved.rename(file.path)
    eventually(lambda: file.error() is None)
    file.append("3\n")
    file.expect(3, 3)


def test_a_link_that_leads_to_another_file_brings_its_samples(follow):
    file = follow("1\n")
    file.expect(1, 1)
    others = [file.path.with_name(f"target{number}") for number in (1, 2)]
    others[0].write_text("a\nb\n")
    others[1].write_text("c\nd\ne\n")
    file.path.unlink()
    file.path.symlink_to(others[0])
    file.expect(2, 3)
    link = file.path.with_name("new-link")
    link.symlink_to(others[1])
    link.replace(file.path)
    file.expect(3, 6)
    with others[1].open("a") as target:
        target.write("f\n")
    file.expect(4, 7)


def test_a_folder_where_the_file_should_be_is_said_and_mended(follow):
    file = follow("1\n")
    file.expect(1, 1)
    moved = file.path.with_name("moved")
    file.path.rename(moved)
    file.path.mkdir()
    eventually(lambda: "folder" in (file.error() or ""))
    file.path.rmdir()
    moved.rename(file.path)
    file.append("2\n")
    file.expect(2, 2)
    assert file.error() is None


def test_a_whole_folder_that_goes_and_comes_back_is_followed_on(follow):
    file = follow("1\n")
    file.expect(1, 1)
    away = file.path.parent.with_name("away")
    shutil.move(file.path.parent, away)
    eventually(lambda: file.error() is not None)
    shutil.move(away, file.path.parent)
    file.append("2\n")
    file.expect(2, 2)
