from __future__ import annotations

import os
import threading
from pathlib import Path

from lc_events.workers.output import CapturedOutput


def captured(tmp_path: Path, data: bytes, *, file_bytes: int = 1_048_576) -> CapturedOutput:
    output = CapturedOutput(tmp_path / "output.log", file_bytes=file_bytes)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb") as program:
        reader = threading.Thread(target=output.read, args=(pipe,))
        reader.start()
        program.write(data)
        program.close()
        reader.join(10)
        assert not reader.is_alive()
    return output


def test_the_last_twenty_lines_are_kept(tmp_path: Path):
    output = captured(tmp_path, b"".join(b"line %d\n" % n for n in range(100)))
    assert output.last_lines().splitlines() == [f"line {n}" for n in range(80, 100)]


def test_one_endless_line_is_cut_to_four_kilobytes(tmp_path: Path):
    assert captured(tmp_path, "é".encode() * 50_000).last_lines() == "é" * 2048


def test_a_progress_bar_is_its_last_state_and_controls_are_gone(tmp_path: Path):
    assert (
        captured(tmp_path, b"10 %\r50 %\r\x1b[31m100 %\x1b[0m\r\n\xff").last_lines()
        == "10 %\n50 %\n[31m100 %[0m\n\ufffd"
    )


def test_secrets_are_not_repeated(tmp_path: Path):
    output = captured(tmp_path, b"login with hunter22 and hunter\nok\n")
    assert output.last_lines({"hunter22", "hunter", "ok"}) == "login with *** and ***\nok"


def test_half_a_secret_at_the_cut_is_not_repeated(tmp_path: Path):
    secret = "s" * 6000
    output = captured(tmp_path, f"{secret}\nend of {secret}\nbye\n".encode())
    assert output.last_lines({secret}) == "end of ***\nbye"


def test_megabytes_leave_a_file_of_bounded_size_with_the_newest(tmp_path: Path):
    captured(tmp_path, b"".join(b"%09d\n" % n for n in range(50_000)), file_bytes=100_000)
    newest = (tmp_path / "output.log").read_bytes()
    older = (tmp_path / "output.log.1").read_bytes()
    assert newest.endswith(b"000049999\n")
    assert len(newest) <= 100_000
    assert len(older) <= 100_000
    assert (older + newest) == b"".join(b"%09d\n" % n for n in range(50_000))[-len(older + newest) :]


def test_a_disk_that_takes_nothing_does_not_hold_up_the_program(tmp_path: Path):
    (tmp_path / "output.log").mkdir()
    assert captured(tmp_path, b"x\n" * 100_000).last_lines().endswith("x")
