from __future__ import annotations

import re
from pathlib import Path

from lc_events.doctor.examination import _Examination
from lc_events.doctor.subject import read_subject

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "find-what-is-wrong.md"
SAYS_NOTHING = {"retained"}
OTHERWISE_NAMED = {"datasets": "dataset …"}


def test_the_page_has_every_check_in_its_order(monkeypatch, tmp_path):
    monkeypatch.setenv("LC_STATE_DIR", str(tmp_path))
    names = [name for name, _ in _Examination(read_subject({})).checks() if name not in SAYS_NOTHING]
    documented = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert documented[4:] == [OTHERWISE_NAMED.get(name, name) for name in names]
