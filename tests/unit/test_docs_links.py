from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "docs", "examples", "lc_events", "mosquitto", "scripts", "tests", "topics")
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]*))?\)")
CITED = re.compile(r"\b(?:benchmarks|docs|examples|scripts|tests|topics)/[\w./-]+\.(?:md|py|yaml|json|conf)\b")


def files(*endings):
    found = [path for ending in endings for path in ROOT.glob(f"*{ending}")]
    found += [path for folder in FOLDERS for ending in endings for path in (ROOT / folder).rglob(f"*{ending}")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def anchors(page):
    """As GitHub makes them of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", files(".md"))
def test_every_link_of_a_page_leads_somewhere(name):
    page = ROOT / name
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{name} links to {target}"
        assert not anchor or anchor in anchors(found), f"{name} links to {target}#{anchor}"


def test_every_page_or_file_that_is_named_is_there():
    wrong = {
        (name, cited)
        for name in files(".py", ".md", ".toml", ".yml", ".yaml", ".conf")
        for cited in CITED.findall((ROOT / name).read_text(encoding="utf-8"))
        if not (ROOT / cited).exists() and not (ROOT / name).parent.joinpath(cited).exists()
    }
    assert wrong == set()
