"""Where settings come from, and one sentence for each that is wrong: which one, from where, what is allowed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from lc_events.errors import UsageError
from lc_events.settings.files import read_config

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

__all__ = ["ProgramSettings"]


class ProgramSettings(BaseSettings):
    """Settings of one program: flags win over the environment, that over the TOML file `config`, that over defaults."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_ignore_empty=True, validate_default=True, enable_decoding=False
    )

    sedna_names: ClassVar[Mapping[str, str]] = {}
    """Field → Sedna's own variable, read when none of ours is set."""

    foreign_names: ClassVar[Collection[str]] = ()
    """What may stand in the file for another program; passed over here."""

    config: Path | None = None

    @classmethod
    def load(cls, **flags: Any) -> Self:
        """Read all sources, `flags` (by field name, None when not given) first; UsageError names all that are wrong."""
        given = {name: value for name, value in flags.items() if value is not None}
        try:
            return cls(**given)
        except ValidationError as error:
            raise UsageError("; ".join(_sentences(cls, given, error))) from None

    @classmethod
    def variable(cls, field: str) -> str:
        """The environment variable of a field."""
        return f"{cls.model_config['env_prefix']}{field}".upper()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the library's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the library's signature
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The order of the sources, the strongest first."""
        config_file = _ConfigFile(settings_cls, cls.foreign_names)
        return init_settings, env_settings, config_file, _SednaNames(settings_cls, cls.sedna_names)


class _ConfigFile(PydanticBaseSettingsSource):
    """The TOML file that a stronger source named."""

    def __init__(self, settings_cls: type[BaseSettings], foreign_names: Collection[str]) -> None:
        super().__init__(settings_cls)
        self._foreign_names = set(foreign_names)

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        return self().get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        path = self.current_state.get("config")
        if not path:
            return {}
        table = read_config(Path(path))
        known = self.settings_cls.model_fields.keys() - {"config"}
        if unknown := sorted(table.keys() - known - self._foreign_names):
            raise UsageError(f"{path}: unknown settings {', '.join(unknown)}; known are {', '.join(sorted(known))}")
        return {name: value for name, value in table.items() if name in known}


class _SednaNames(PydanticBaseSettingsSource):
    """The variables that Sedna's own deployments set."""

    def __init__(self, settings_cls: type[BaseSettings], names: Mapping[str, str]) -> None:
        super().__init__(settings_cls)
        self._names = names

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        return self().get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        return {field: os.environ[name] for field, name in self._names.items() if os.environ.get(name)}


def _sentences(cls: type[ProgramSettings], flags: Mapping[str, Any], error: ValidationError) -> list[str]:
    sentences = []
    for detail in error.errors(include_url=False):
        if detail["type"] == "default_factory_not_called":  # follows from another error, which is told
            continue
        field = str(detail["loc"][0]) if detail["loc"] else ""
        if field:
            sentences.append(f"{_origin(cls, field, flags)}{_shown(cls, field, detail)} {_rule(detail)}")
        else:
            sentences.append(_rule(detail))
    return sentences


def _origin(cls: type[ProgramSettings], field: str, flags: Mapping[str, Any]) -> str:
    """Where the wrong value stands; a default, such as the host name, goes by its variable."""
    variable = cls.variable(field)
    sedna = cls.sedna_names.get(field, "")
    config = flags.get("config") or os.environ.get(cls.variable("config"))
    if field in flags:
        return "--" + field.replace("_", "-")
    if os.environ.get(variable):
        return variable
    if config and field in read_config(Path(config)):
        return f"{field} in {config}"
    return sedna if os.environ.get(sedna) else variable


def _shown(cls: type[ProgramSettings], field: str, detail: ErrorDetails) -> str:
    """The wrong value, unless it may hold a password."""
    return f" is {detail['input']!r}, but" if cls.model_fields[field].repr else ""


def _rule(detail: ErrorDetails) -> str:
    if cause := detail.get("ctx", {}).get("error"):
        return str(cause)
    allowed = detail["msg"].removeprefix("Input should be ").partition(", unable")[0]
    return f"must be {allowed}"
