"""Throw-away certificates for TLS tests, made by the openssl program."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, PEM."""

    cert: Path
    key: Path


def self_signed(folder: Path, name: str) -> Certificate:
    """A certificate that is its own CA; the test is skipped where there is no openssl."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
    _openssl("req", "-x509", *_NEW_KEY, "-days", "2", *_names(name, made.key), "-out", str(made.cert))
    return made


def issued(
    folder: Path,
    name: str,
    authority: Certificate,
    *,
    days: int = 2,
    san: str = "IP:127.0.0.1",
    common_name: str | None = None,
) -> Certificate:
    """A certificate signed by `authority` for the subject alternative names `san`; negative `days`: expired."""
    made = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName={san}\n")
    _openssl("req", *_NEW_KEY, *_names(common_name or name, made.key), "-out", str(request))
    _openssl(
        *("x509", "-req", "-in", str(request), "-CA", str(authority.cert), "-CAkey", str(authority.key)),
        *("-CAcreateserial", "-days", str(days), "-extfile", str(extensions), "-out", str(made.cert)),
    )
    return made


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _names(name: str, key: Path) -> tuple[str, ...]:
    subject = name.replace("/", r"\/").replace("+", r"\+")  # both join parts of a subject
    return ("-subj", f"/CN={subject}", "-keyout", str(key))


def _openssl(*arguments: str) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
