"""Places outside of a job's outputDir whose models may be deployed: folders and S3 prefixes that the owner names."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import unquote

__all__ = ["lies_in", "read_place"]

_SCHEME = "s3://"
_BUCKET = re.compile(r"[A-Za-z0-9._-]{1,255}")
"""As boto3 checks it before it asks a server."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_RULE = "must be a local folder such as /models, s3://BUCKET or s3://BUCKET/PREFIX"


def read_place(text: str) -> str:
    """A place as it is compared: without a slash at its end, a local one without `.` and doubled slashes.

    Raises ValueError, in words, for what is no place, and for `/`, which would open every file of the node.
    """
    if _CONTROL.search(text) or _climbs(text):
        raise ValueError(f"{_RULE}, without '..' and control characters")
    if text.startswith(_SCHEME):
        bucket, *names = text.removesuffix("/").removeprefix(_SCHEME).split("/")
        if _BUCKET.fullmatch(bucket) is None or "" in names:
            raise ValueError(f"{_RULE}, without empty names in it")
        return text.removesuffix("/")
    if not text.startswith("/"):
        raise ValueError(_RULE)
    folder = posixpath.normpath("/" + text.lstrip("/"))
    if folder == "/":
        raise ValueError("must be a folder below /, for / itself would open every file of the node")
    return folder


def lies_in(url: str, place: str) -> bool:
    """Whether a URL names something below a place, name by name; links are the storage's to check.

    A URL with `..` lies nowhere, not even one that hides it behind percent signs: keys are taken literally here, but a
    server may not.
    """
    if _climbs(url) or url.startswith(_SCHEME) != place.startswith(_SCHEME):
        return False
    names, folder = _names(url), _names(place.rstrip("/"))
    return len(names) > len(folder) and names[: len(folder)] == folder and names[-1] != ""


def _climbs(url: str) -> bool:
    while (decoded := unquote(url)) != url:
        url = decoded
    return ".." in url.split("/")


def _names(url: str) -> list[str]:
    """The names of a URL; a key may hold empty ones, a path that begins at the root none."""
    if url.startswith(_SCHEME):
        return url.removeprefix(_SCHEME).split("/")
    first, *names = url.split("/")
    return [first, *(name for name in names if name not in ("", "."))]
