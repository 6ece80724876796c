from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_core import PydanticUndefined

from lc_events.settings import meanings
from lc_events.settings.programs import GmSettings, LcSettings, WorkerSettings

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"
PROGRAMS = [
    pytest.param(meanings.LC, LcSettings, id="run"),
    pytest.param(meanings.GM, GmSettings, id="gm"),
    pytest.param(meanings.WORKER, WorkerSettings, id="worker"),
]


@pytest.mark.parametrize(("program", "model"), PROGRAMS)
def test_every_setting_has_a_meaning_and_every_meaning_a_setting(program, model):
    assert program.settings.keys() == model.model_fields.keys()
    assert program.sedna_names == model.sedna_names
    assert program.prefix == model.model_config["env_prefix"]


@pytest.mark.parametrize(("program", "model"), PROGRAMS)
def test_the_defaults_in_words_are_those_in_code(program, model):
    in_code = {
        name: ",".join(field.default) or "none"
        if isinstance(field.default, tuple)
        else f"{field.default}".removesuffix(".0")
        for name, field in model.model_fields.items()
        if field.default not in (None, PydanticUndefined)
    }
    in_words = {name: meaning.default for name, meaning in program.settings.items()}

    assert in_code.items() <= in_words.items()


@pytest.mark.parametrize(("program", "model"), PROGRAMS)
def test_the_reference_is_up_to_date(program, model):
    rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for name, meaning in program.settings.items():
        sedna = f" [`{program.sedna_names[name]}`]" if name in program.sedna_names else ""
        rows.append(f"| `{model.variable(name)}`{sedna} | {meaning.default} | {meaning.text} |")
    table = "\n".join(rows)

    assert table in REFERENCE.read_text(encoding="utf-8"), f"put this table into {REFERENCE.name}:\n{table}"
