"""Places outside of a job's outputDir whose models may be deployed: folders and S3 prefixes that the owner names."""

from __future__ import annotations

import posixpath
import re
from string import hexdigits

from lc_events.messages.resources import below, is_s3

__all__ = ["NOR_IN_A_PLACE", "lies_in", "read_place"]

NOR_IN_A_PLACE = "nor in a place that LC_MODEL_PLACES names"
"""The end of a message about a model that lies neither below its outputDir nor in such a place."""

_SCHEME = "s3://"
_BUCKET = re.compile(r"[A-Za-z0-9._-]{1,255}")
"""As boto3 checks it before it asks a server."""

_DECODED = {high + low: chr(int(high + low, 16)) for high in hexdigits for low in hexdigits}
"""What `%XX` stands for. Above 0x7F it is one byte of a longer character, so neither `.` nor `/` nor part of `%XX`."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_RULE = "must be a local folder such as /models, s3://BUCKET or s3://BUCKET/PREFIX"


def read_place(text: str) -> str:
    """A place as it is compared: without a slash at its end, a local one without `.` and doubled slashes.

    Raises ValueError for text that names no such place, and for `/`, which would open every file of the node.
    """
    if _CONTROL.search(text) or _climbs(text):
        raise ValueError(f"{_RULE}, without '..' and control characters")
    if is_s3(text):
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
    """Whether a URL lies below a place or an outputDir, compared name by name; the storage checks links.

    A URL with `..` lies nowhere, even if percent signs hide it: we take keys literally, but a server may decode them.
    """
    return below(url, place) and not (is_s3(url) and url.endswith("/")) and not _climbs(url)


def _climbs(url: str) -> bool:
    """Whether `..` is among the names of a URL, however often it is percent-encoded.

    A decoded character may be part of the next `%XX`, so this finds what decoding until nothing changes would find. It
    is done in one pass, because a worker wrote the URL and may have encoded it thousands of times.
    """
    plain: list[str] = []
    for char in url:
        plain.append(char)
        while len(plain) > 2 and plain[-3] == "%" and (decoded := _DECODED.get(plain[-2] + plain[-1])) is not None:
            plain[-3:] = decoded
    return ".." in "".join(plain).split("/")
