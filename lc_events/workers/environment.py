"""What a program finds in its environment: Sedna's variables, the template's, a few of the agent's, its own secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lc_events.errors import RefusedError
from lc_events.messages.secrets import is_secret_name
from lc_events.messages.worker import WorkOrder
from lc_events.storage import LocalStorage
from lc_events.workers.objects import OBJECTS_VARIABLE, ObjectFolder
from lc_events.workers.result import RESULT_FILE_VARIABLE
from lc_events.workers.roots import URL_VARIABLES, real_paths
from lc_events.workers.settings import AgentSettings

__all__ = ["RUN_FOLDER_VARIABLE", "ProgramEnvironment", "expand", "order_urls", "program_environment"]

RUN_FOLDER_VARIABLE = "LC_RUN_FOLDER"
"""Also the mark by which a process that outlived its agent is found."""

_INHERITED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_ALL|LC_CTYPE|TZ|TMPDIR|VIRTUAL_ENV|PYTHONPATH|LD_LIBRARY_PATH"
    r"|SSL_CERT_FILE|SSL_CERT_DIR|(?:HTTP|HTTPS|NO)_PROXY|(?:http|https|no)_proxy"
)
_S3 = re.compile(r"AWS_[A-Z0-9_]+|ACCESS_KEY_ID|SECRET_ACCESS_KEY|S3_ENDPOINT_URL|S3_USE_HTTPS")
"""What boto3 reads, and Sedna's own names."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOADER = re.compile(
    r"(?:LD|DYLD)_|BASH_|NODE_OPTIONS$|(?:PERL5|RUBY)(?:LIB|OPT)$|PYTHON(?:PATH|HOME|STARTUP|USERBASE|BREAKPOINT)$"
    r"|(?:PATH|ENV|IFS|PS4|SHELLOPTS|BASHOPTS|GCONV_PATH|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS)$"
)
"""What makes a loader, a shell or an interpreter run something else before, or in place of, the program."""
_OURS = re.compile(r"(?:LC|GM|WORKER)_")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


@dataclass(frozen=True, slots=True)
class ProgramEnvironment:
    """The variables of a program, and those values among them that may not appear in anything we publish."""

    variables: Mapping[str, str]
    secrets: frozenset[str]


def program_environment(
    order: WorkOrder,
    worker: str,
    settings: AgentSettings,
    *,
    run_folder: Path,
    result_file: Path,
    objects: ObjectFolder,
) -> ProgramEnvironment:
    """Put a program's environment together; later ones win: inherited, the order's, Sedna's names, ours.

    Values may refer to variables set before them as $(NAME), as in a Kubernetes container. Raises RefusedError for a
    name that would change how executables are loaded and a secret that this node lacks, StorageError for a URL that
    leaves the root.
    """
    own, local = settings.environ, LocalStorage(settings.root)
    secret_names = [*order.secret_env, *(name for name in order.env if is_secret_name(name))]
    secrets = {name: _own_secret(name, own) for name in secret_names}
    uses_s3 = any("s3://" in url for url in order_urls(order).values())
    fixed = {
        "PYTHONUNBUFFERED": "1",
        "JOB_NAME": order.job,
        "NAMESPACE": order.namespace,
        "WORKER_NAME": worker,
        "WORKER_PROGRAMS": str(settings.programs),
        "LC_STAGE": order.stage,
        "LC_ROUND": str(order.round),
        RESULT_FILE_VARIABLE: str(result_file),
        RUN_FOLDER_VARIABLE: str(run_folder),
        **({OBJECTS_VARIABLE: str(objects.folder)} if uses_s3 else {}),
    }
    if uses_s3 and settings.s3_ca_file is not None:
        fixed["AWS_CA_BUNDLE"] = str(settings.s3_ca_file)
    variables = {**_matching(_INHERITED, own), **(_matching(_S3, own) if uses_s3 else {}), **fixed}
    plain = {name: value for name, value in order.env.items() if name not in secrets}
    plain |= order_urls(order)
    for name, value in plain.items():
        _check(name)
        is_url = name in URL_VARIABLES
        variables[name] = real_paths(name, value, local, objects.path) if is_url else expand(value, variables)
    variables |= secrets | fixed
    credentials = {value for name, value in variables.items() if name in secrets or is_secret_name(name)}
    return ProgramEnvironment(variables, frozenset(credentials - {""}))


def order_urls(order: WorkOrder) -> Mapping[str, str]:
    """Sedna's variables that hold URLs, as an order has them."""
    given = {name: order.env[name] for name in URL_VARIABLES if name in order.env}
    return given if order.output_url is None else {"OUTPUT_URL": order.output_url, **given}


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace $(NAME) as Kubernetes does in a container's command and args: unknown ones stay, $$ is a dollar."""

    def value(match: re.Match[str]) -> str:
        return variables.get(match[1], match[0]) if match[1] else "$"

    return _REFERENCE.sub(value, text)


def _matching(names: re.Pattern[str], environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if names.fullmatch(name)}


def _check(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise RefusedError(f"{name[:100]!r} is not the name of an environment variable")
    if _LOADER.match(name):
        raise RefusedError(f"{name[:100]} would change what is run; an order may not set it")


def _own_secret(name: str, environ: Mapping[str, str]) -> str:
    _check(name)
    if _OURS.match(name):
        raise RefusedError(f"{name[:100]} belongs to lc-events itself; an order may not read it")
    if name not in environ:
        raise RefusedError(
            f"no order carries the value of {name[:100]} (a secret, or kept elsewhere): set it in the environment of"
            " this node's agent"
        )
    return environ[name]
