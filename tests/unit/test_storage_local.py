from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import eventually

from lc_events.errors import StorageError
from lc_events.storage import FileStat, LocalStorage, WrittenFile, places
from lc_events.storage.places import opened_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(tmp_path)


def test_a_url_is_a_path_below_the_root(storage, tmp_path):
    written = storage.write("/output/job1/data.txt", [b"one\n", b"two\n"])
    assert written == WrittenFile("/output/job1/data.txt", 8, hashlib.sha256(b"one\ntwo\n").hexdigest())
    assert (tmp_path / "output/job1/data.txt").read_bytes() == b"one\ntwo\n"


def test_no_chunks_make_an_empty_file(storage, tmp_path):
    assert storage.write("/a", []).size == 0
    assert (tmp_path / "a").read_bytes() == b""


@pytest.mark.parametrize("umask", [0o022, 0o027])
def test_modes_follow_the_umask(storage, tmp_path, umask):
    old = os.umask(umask)
    try:
        storage.write("/new/data.txt", [b"x"])
    finally:
        os.umask(old)
    assert (tmp_path / "new/data.txt").stat().st_mode & 0o777 == 0o666 & ~umask
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o777 & ~umask


def test_a_reader_keeps_the_old_file_while_the_new_one_is_written(storage, tmp_path):
    storage.write("/index.pkl", [b"old old old"])
    seen = []

    def chunks():
        yield b"n"
        seen.append((tmp_path / "index.pkl").read_bytes())
        yield b"ew"

    with (tmp_path / "index.pkl").open("rb") as reader:
        storage.write("/index.pkl", chunks())
        assert reader.read() == b"old old old"
    assert seen == [b"old old old"]
    assert (tmp_path / "index.pkl").read_bytes() == b"new"


def test_an_error_of_the_chunks_leaves_nothing_behind(storage, tmp_path):
    def chunks():
        yield b"half"
        raise StorageError("the spool is short")

    with pytest.raises(StorageError, match="the spool is short"):
        storage.write("/data.txt", chunks())
    assert names(tmp_path) == []


def test_leftovers_of_a_killed_process_go_with_the_next_write(storage, tmp_path):
    (tmp_path / ".data.txt.1-1.lc-part").write_bytes(b"half")
    (tmp_path / ".data.txt.old.1-1.lc-part").write_bytes(b"of another target")
    storage.write("/data.txt", [b"whole"])
    assert names(tmp_path) == [".data.txt.old.1-1.lc-part", "data.txt"]


def test_two_writes_of_one_target_do_not_disturb_each_other(storage, tmp_path):
    def chunks():
        yield b"outer "
        storage.write("/data.txt", [b"inner"])
        yield b"file"

    storage.write("/data.txt", chunks())
    assert (tmp_path / "data.txt").read_bytes() == b"outer file"
    assert names(tmp_path) == ["data.txt"]


@pytest.mark.parametrize("url", ["/../x", "/a/../../x", "..", "../x", "/a/b/../../../etc/passwd", "/a\0b"])
def test_a_path_out_of_the_root_is_refused(storage, url):
    for attempt in (
        lambda: storage.write(url, [b""]),
        lambda: storage.make_folder(url),
        lambda: storage.exists(url),
        lambda: storage.copy(url, "/t", below=("/",)),
    ):
        with pytest.raises(StorageError) as caught:
            attempt()
        assert caught.value.code == "outside"


def test_a_path_that_turns_round_inside_the_root_is_followed(storage, tmp_path):
    storage.write("/a/../b/x", [b"1"])
    assert (tmp_path / "b/x").read_bytes() == b"1"


def test_a_smaller_model_replaces_a_larger_one_whole(storage, tmp_path):
    storage.write("/out/train/1/m.pkl", [b"large" * 100])
    storage.write("/out/train/2/m.pkl", [b"small"])
    storage.copy("/out/train/1/m.pkl", "/out/deploy/index.pkl", below=("/out",))
    copied = storage.copy("/out/train/2/m.pkl", "/out/deploy/index.pkl", below=("/out",))
    assert copied == WrittenFile("/out/deploy/index.pkl", 5, hashlib.sha256(b"small").hexdigest())
    assert (tmp_path / "out/deploy/index.pkl").read_bytes() == b"small"


def test_a_model_outside_the_folder_is_refused_even_through_links(storage, tmp_path):
    (tmp_path / "secret").write_bytes(b"root:x")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/model.pkl").symlink_to(tmp_path / "secret")
    (tmp_path / "out/up").symlink_to(tmp_path)
    for url in ("/out/model.pkl", "/out/up/secret", "/secret", "/out/../secret", "/out", "/outer/model.pkl"):
        for below in (("/out",), ("/elsewhere", "/out"), ()):
            with pytest.raises(StorageError) as caught:
                storage.copy(url, "/out/deploy/index.pkl", below=below)
            assert caught.value.code == "outside", url
    assert not (tmp_path / "out/deploy").exists()


def test_a_model_in_any_of_several_folders_is_copied_through_links_from_one_to_another(storage, tmp_path):
    for url in ("/models/m.pkl", "/disk/released/m.pkl"):
        storage.write(url, [url.encode()])
    (tmp_path / "released").symlink_to(tmp_path / "disk/released")
    (tmp_path / "models/newest.pkl").symlink_to("../released/m.pkl")
    folders = ("/out", "/models", "/released")
    for url, content in (
        ("/models/m.pkl", b"/models/m.pkl"),
        ("/released/m.pkl", b"/disk/released/m.pkl"),
        ("/models/newest.pkl", b"/disk/released/m.pkl"),
    ):
        storage.copy(url, "/out/deploy/index.pkl", below=folders, within="/out")
        assert (tmp_path / "out/deploy/index.pkl").read_bytes() == content
    with pytest.raises(StorageError, match="does not lie below /out or /models, links followed"):
        storage.copy("/models/newest.pkl", "/out/deploy/index.pkl", below=("/out", "/models"))


def test_a_link_in_the_folder_of_the_copy_does_not_lead_it_elsewhere(storage, tmp_path):
    storage.write("/models/m.pkl", [b"m"])
    (tmp_path / "out").mkdir()
    (tmp_path / "out/deploy").symlink_to(tmp_path / "models")
    with pytest.raises(StorageError, match="a link leads out of /out") as caught:
        storage.copy("/models/m.pkl", "/out/deploy/index.pkl", below=("/models",), within="/out")
    assert caught.value.code == "outside"
    assert names(tmp_path / "models") == ["m.pkl"]


def test_a_folder_that_is_itself_a_link_is_followed(storage, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk/m").write_bytes(b"m")
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    assert storage.copy("/out/m", "/out/deploy/index.pkl", below=("/out",)).size == 1


def test_a_model_that_does_not_exist_says_so(storage):
    storage.make_folder("/out")
    with pytest.raises(StorageError) as caught:
        storage.copy("/out/m.pkl", "/out/deploy/index.pkl", below=("/out",))
    assert caught.value.missing
    assert caught.value.code == "missing"
    assert "m.pkl: No such file" in str(caught.value)


def test_a_folder_or_pipe_is_no_model(storage, tmp_path):
    storage.make_folder("/out/m")
    os.mkfifo(tmp_path / "out/pipe")
    for url in ("/out/m", "/out/pipe"):
        with pytest.raises(StorageError) as caught:
            storage.copy(url, "/out/deploy/index.pkl", below=("/out",))
        assert caught.value.code == "not_a_file"
        assert not caught.value.missing


def test_a_file_is_not_written_over_a_folder(storage):
    storage.make_folder("/out/m")
    with pytest.raises(StorageError) as caught:
        storage.write("/out/m", [b"x"])
    assert caught.value.code == "not_a_file"


def test_folders_are_made_once_and_a_file_in_the_way_is_an_error(storage, tmp_path):
    storage.make_folder("/out/data/train")
    storage.make_folder("/out/data/train")
    assert (tmp_path / "out/data/train").is_dir()
    storage.write("/file", [b""])
    with pytest.raises(StorageError, match="file is not a folder"):
        storage.make_folder("/file/x")


def test_a_read_only_folder_is_named_with_the_system_s_words(tmp_path):
    if os.geteuid() == 0:
        # Root may write anywhere; /proc refuses even root.
        storage, folder = LocalStorage(Path("/proc")), "/self"
    else:
        storage, folder = LocalStorage(tmp_path), "/closed"
        (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(StorageError, match=f"{folder}/x"):
        storage.write(f"{folder}/x", [b"x"])


def test_no_space_is_told_and_leaves_nothing_behind(storage, tmp_path):
    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, old_limit[1]))
    try:
        with pytest.raises(StorageError, match=os.strerror(errno.EFBIG)) as caught:
            storage.write("/data.txt", [b"x" * 600] * 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
        signal.signal(signal.SIGXFSZ, old_handler)
    assert caught.value.code == "no_space"
    assert str(tmp_path / "data.txt") in str(caught.value)
    assert names(tmp_path) == []


def test_reading_a_range_ends_where_the_file_ends(storage):
    storage.write("/f", [b"0123456789"])
    assert b"".join(storage.read("/f")) == b"0123456789"
    assert b"".join(storage.read("/f", offset=3, length=4)) == b"3456"
    assert b"".join(storage.read("/f", offset=8, length=40)) == b"89"
    assert b"".join(storage.read("/f", offset=80)) == b""
    assert storage.sha256("/f") == hashlib.sha256(b"0123456789").hexdigest()


def test_stat_and_exists(storage):
    storage.write("/d/f", [b"123"])
    assert storage.stat("/d/f") == FileStat(3)
    assert storage.exists("/d/f")
    assert not storage.exists("/d")
    assert not storage.exists("/d/g")
    assert not storage.exists("/d/f/g")
    with pytest.raises(StorageError) as caught:
        storage.stat("/g")
    assert caught.value.missing


EXCHANGE_FOR_EVER = """
import ctypes, sys
libc, (one, other) = ctypes.CDLL(None), [path.encode() for path in sys.argv[1:]]
while libc.renameat2(-100, one, -100, other, 2) == 0:
    pass
"""


@contextlib.contextmanager
def exchanging(one, other):
    """A worker that exchanges the two as fast as it can (renameat2 with RENAME_EXCHANGE)."""
    worker = subprocess.Popen([sys.executable, "-c", EXCHANGE_FOR_EVER, one, other])
    try:
        eventually(one.is_symlink)
        yield
        assert worker.poll() is None
    finally:
        worker.kill()
        worker.wait()


def test_a_folder_that_is_exchanged_for_a_link_all_the_time_opens_nothing_else(storage, tmp_path):
    storage.write("/secret/m.pkl", [b"secret"])
    storage.write("/out/d/m.pkl", [b"model"])
    (tmp_path / "out/l").symlink_to(tmp_path / "secret")
    seen = set()
    with exchanging(tmp_path / "out/d", tmp_path / "out/l"):
        for _ in range(10_000):
            try:
                seen.add(b"".join(storage.read("/out/d/m.pkl", below=("/out",))))
            except StorageError as error:
                seen.add(error.code)
    assert seen <= {b"model", "outside"}


def test_a_folder_that_is_exchanged_for_a_link_all_the_time_leads_no_writing_elsewhere(storage, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "out/deploy").mkdir(parents=True)
    (tmp_path / "out/l").symlink_to(tmp_path / "secret")
    seen = set()
    with exchanging(tmp_path / "out/deploy", tmp_path / "out/l"):
        for _ in range(1_000):
            try:
                seen.add(storage.write("/out/deploy/m.pkl", [b"model"], within="/out").size)
            except StorageError as error:
                seen.add(error.code)
    assert seen <= {5, "outside"}
    assert names(tmp_path / "secret") == []


def test_a_model_that_is_replaced_while_it_is_read_is_read_to_its_end(storage, tmp_path):
    storage.write("/out/m.pkl", [b"old"])
    reading = storage.read("/out/m.pkl", length=10, below=("/out",))
    assert next(reading) == b"old"
    storage.write("/out/m.pkl", [b"new"])
    with (tmp_path / "out/m.pkl").open("rb") as file:
        (tmp_path / "out/m.pkl").unlink()
        assert opened_path(file.fileno(), tmp_path / "out/m.pkl") == tmp_path / "out/m.pkl"


def test_without_proc_the_path_is_followed_again(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(places, "_OPEN_FILES", tmp_path / "no proc")
    storage.write("/secret", [b"secret"])
    storage.write("/out/m.pkl", [b"model"])
    assert storage.copy("/out/m.pkl", "/out/deploy/index.pkl", below=("/out",), within="/out").size == 5
    with (tmp_path / "secret").open("rb") as file, pytest.raises(StorageError, match="a link changes") as caught:
        opened_path(file.fileno(), tmp_path / "out/m.pkl")
    assert caught.value.code == "outside"


def test_a_folder_that_became_a_link_is_another_one_until_it_is_remembered_anew(storage, tmp_path):
    storage.write("/out/m.pkl", [b"model"])
    storage.write("/etc/shadow", [b"root:x"])
    storage.remember("/out")
    (tmp_path / "out").rename(tmp_path / "old")
    (tmp_path / "out").symlink_to(tmp_path / "etc")
    for deed in (
        lambda: storage.copy("/out/shadow", "/out/deploy/index.pkl", below=("/out",), within="/out"),
        lambda: storage.write("/out/data.txt", [b"a"], within="/out"),
        lambda: storage.make_folder("/out/data/train", within="/out"),
    ):
        with pytest.raises(StorageError, match="/out is another folder than when the job was inserted") as caught:
            deed()
        assert caught.value.code == "outside"
    assert names(tmp_path / "etc") == ["shadow"]
    storage.remember("/out")
    assert storage.copy("/out/shadow", "/out/deploy/index.pkl", below=("/out",), within="/out").size == 6


@pytest.mark.parametrize("link", [None, "/state", "/state/secrets.json"])
def test_what_is_closed_is_read_and_written_by_no_job_whatever_place_holds_it(tmp_path, link):
    LocalStorage(tmp_path).write("/var/state/secrets.json", [b"secret"])
    (tmp_path / "state").symlink_to(tmp_path / "var/state")
    storage = LocalStorage(tmp_path, closed=[tmp_path / "state"])
    source = "/var/state/secrets.json"
    if link is not None:
        (tmp_path / "var/x").symlink_to(tmp_path / link[1:])
        source = "/var/x" + ("" if link.endswith("json") else "/secrets.json")
    with pytest.raises(StorageError, match="/var/state is the controller's own") as caught:
        storage.copy(source, "/var/deploy/index.pkl", below=("/var",), within="/var")
    assert caught.value.code == "outside"
    with pytest.raises(StorageError, match="the controller's own"):
        storage.write("/var/state/secrets.json", [b""], within="/var")
    assert (tmp_path / "var/state/secrets.json").read_bytes() == b"secret"


@pytest.mark.parametrize(
    ("place", "words"), [("/", "holds"), ("/var", "holds"), ("/l", "is"), ("/var/state/spool", "lies in")]
)
def test_a_place_that_opens_what_is_closed_is_a_conflict(tmp_path, place, words):
    (tmp_path / "var/state").mkdir(parents=True)
    (tmp_path / "l").symlink_to(tmp_path / "var/state")
    storage = LocalStorage(tmp_path, closed=[tmp_path / "var/state"])
    with pytest.raises(StorageError, match=f"{words} {tmp_path}/var/state, which is the controller's own") as caught:
        storage.remember(place)
    assert caught.value.code == "conflict"
    storage.remember("/var/state2")
    storage.remember("/var/out")
