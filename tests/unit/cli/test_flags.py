from __future__ import annotations

from typing import Annotated

import pytest
import typer

from lc_events.cli.flags import Flags, with_settings
from lc_events.errors import UsageError
from lc_events.settings.meanings import LC
from lc_events.settings.programs import LcSettings


@pytest.fixture
def commands():
    """A command line whose command `act` shows what it was given."""
    commands = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)

    @commands.command()
    @with_settings(LC)
    def act(flags: Flags, *, take_over: Annotated[bool, typer.Option("--take-over", help="Take it.")] = False) -> None:
        """Act."""
        settings = LcSettings.load(**flags)
        typer.echo(f"{settings.node} {settings.tick_seconds} {settings.ticks} {take_over}")

    return commands


def test_a_flag_is_a_setting(lc_events, commands):
    result = lc_events("--node", "edge7", "--tick-seconds=0.5", "--take-over", commands=commands)

    assert result == (0, "edge7 0.5 all True\n", "")


def test_a_wrong_flag_is_named_as_it_was_written(lc_events, commands):
    result = lc_events("--tick-seconds", "soon", commands=commands)

    assert (result.code, result.err) == (2, "lc-events: --tick-seconds is 'soon', but must be a valid number\n")


def test_help_names_flag_variable_and_default(lc_events, commands):
    words = " ".join(lc_events("--help", commands=commands).out.split())

    assert "--tick-seconds VALUE Overrides the period of ticks [LC_TICK_SECONDS; default: the trigger's" in words
    assert "--take-over Take it." in words
    assert "--flags" not in words


def test_what_was_not_given_does_not_hide_the_environment(monkeypatch):
    monkeypatch.setenv("LC_NODE", "edge8")
    assert LcSettings.load(**dict.fromkeys(LC.settings)).node == "edge8"
    with pytest.raises(UsageError):
        LcSettings.load(node="")
