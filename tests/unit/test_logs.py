from __future__ import annotations

import json
import logging
import sys
import warnings

import pytest

from lc_events.logs import configure_logging, set_mask

LOG = logging.getLogger("lc_events.somewhere")


@pytest.fixture(autouse=True)
def logging_as_before():
    root, own = logging.getLogger(), logging.getLogger("lc_events")
    before = root.handlers[:], root.level, own.level
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], level, own_level = before
    root.setLevel(level)
    own.setLevel(own_level)


def fail(text):
    raise ValueError(text)


def test_a_record_is_one_line_whatever_is_in_it(capsys):
    configure_logging()
    LOG.info("line\nline\x1b[31m red \u2028 \u202e end", extra={"job": "default/job1"})

    assert capsys.readouterr().err.endswith(
        "Z info lc_events.somewhere: line\\nline\\x1b[31m red \\u2028 \\u202e end job=default/job1\n"
    )


def test_a_traceback_stays_on_the_line(capsys):
    configure_logging()
    try:
        fail("reason")
    except ValueError:
        LOG.exception("failed")

    [line] = capsys.readouterr().err.splitlines()
    assert "failed | Traceback" in line
    assert line.endswith("ValueError: reason")


def test_json_is_one_object_a_line_with_the_extra_fields(capsys):
    configure_logging("debug", "json")
    LOG.debug(
        "count of %s\n", "job\udcff", extra={"code": "malformed", "count": 2**70, "late": float("nan"), "ok": True}
    )
    try:
        fail("reason")
    except ValueError:
        LOG.exception("failed")

    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["level"], first["logger"], first["message"]) == (
        "debug",
        "lc_events.somewhere",
        "count of job\udcff\n",
    )
    assert (first["code"], first["count"], first["late"], first["ok"]) == ("malformed", 2**70, "nan", True)
    assert first["time"].endswith("Z")
    assert second["exception"].endswith("ValueError: reason")


@pytest.mark.parametrize(("level", "shown"), [("info", ["info", "error"]), ("error", ["error"])])
def test_only_the_level_and_above_is_shown(capsys, level, shown):
    configure_logging(level)
    for name in ("debug", "info", "error"):
        getattr(LOG, name)("text")

    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == shown


def test_libraries_are_heard_from_warning_on_even_when_debugging(capsys):
    configure_logging("debug")
    logging.getLogger("botocore.hooks").debug("noise")
    logging.getLogger("urllib3").info("noise")
    logging.getLogger("paho").warning("worth hearing")

    assert [line.split(maxsplit=1)[1] for line in capsys.readouterr().err.splitlines()] == [
        "warning paho: worth hearing"
    ]


def test_warnings_of_libraries_are_records(capsys):
    configure_logging()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("old call", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(capture=False)

    [line] = capsys.readouterr().err.splitlines()
    assert " warning py.warnings: " in line
    assert "old call" in line


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_mask_is_applied_to_messages_fields_and_tracebacks(capsys, log_format):
    configure_logging("info", log_format)
    set_mask(lambda text: text.replace("hunter2", "***"))
    try:
        fail("with hunter2")
    except ValueError:
        LOG.exception("password %s", "hunter2", extra={"url": "mqtt://u:hunter2@h"})

    shown = capsys.readouterr().err
    assert "hunter2" not in shown
    assert shown.count("***") == 4  # the message, the field, the line that raised and what it raised


def test_the_log_goes_to_standard_error_only(capsys):
    configure_logging()
    LOG.info("text")

    assert capsys.readouterr().out == ""
    assert [handler.stream for handler in logging.getLogger().handlers] == [sys.stderr]
