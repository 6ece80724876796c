"""One flag per setting, so that `--tick-seconds 1`, `LC_TICK_SECONDS=1` and `tick_seconds = 1` mean the same."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lc_events.settings.meanings import Program

__all__ = ["Flags", "with_settings"]

Flags = dict[str, str | None]
"""Setting → what was given, None if nothing was."""


def with_settings(program: Program) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command one flag per setting of `program`; its first parameter gets what was given, unchecked."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_flags(**given: Any) -> None:
            command({name: given.pop(name) for name in program.settings}, **given)

        own = [*inspect.signature(command, eval_str=True).parameters.values()][1:]
        parameters = [*own, *(_flag(program, name) for name in program.settings)]
        with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_flags

    return decorate


def _flag(program: Program, name: str) -> inspect.Parameter:
    meaning = program.settings[name]
    text = f"{meaning.text[0].upper()}{meaning.text[1:]} [{program.prefix}{name.upper()}; default: {meaning.default}]"
    option = typer.Option(f"--{name.replace('_', '-')}", help=text, metavar="VALUE", show_default=False)
    annotation = Annotated[str | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
