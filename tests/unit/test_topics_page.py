from __future__ import annotations

import re
from pathlib import Path

from lc_events.asyncapi.channels import CHANNELS, Channel

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "topics.md"
HEAD = ["| topic | from → to | retained | payload | what it says |", "| --- | --- | --- | --- | --- |"]


def row(channel: Channel) -> str:
    address = re.sub(r"\{(?:resource_)?(\w+)\}", lambda match: match[1].upper(), f"sedna/{channel.address}")
    payload = "`1` or `0`"
    if channel.model is not None:
        name = channel.model.__name__
        payload = f"[{name}](../../topics/schemas/{name}.json), [example](../../topics/examples/{channel.example}.json)"
    retained = "yes" if channel.retained else "no"
    return f"| `{address}` | {channel.sender} → {channel.receiver} | {retained} | {payload} | {channel.says} |"


def test_the_page_has_the_table_that_the_program_has():
    table = "\n".join([*HEAD, *map(row, CHANNELS)])
    assert table in PAGE.read_text(encoding="utf-8"), f"put this table into {PAGE.name}:\n{table}"


def test_every_link_of_the_page_leads_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", PAGE.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (PAGE.parent / link).exists()] == []
