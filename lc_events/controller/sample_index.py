"""The index that Sedna writes beside the samples of a txt dataset in S3: the objects that they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["sample_index"]


def sample_index(samples: Iterable[bytes], dataset_url: str) -> Iterator[bytes]:
    """First the URL prefix of the dataset, then each blank-separated word of a sample whose file name has an extension.

    A word may come again, as in `golden/s3_txt` (pkg/localcontroller of Sedna, where the extension is that of Go's
    `path.Ext`: a dot after the last slash).
    """
    yield dataset_url[: dataset_url.rfind("/") + 1].encode() + b"\n"
    for line in _lines(samples):
        words = line.replace(b"\t", b" ").split(b" ")
        if named := [word for word in words if b"." in word.rpartition(b"/")[2]]:
            yield b"\n".join(named) + b"\n"


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines without their end, from chunks that may end anywhere."""
    begun: list[bytes] = []
    for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        begun.append(first)
        if rest:
            yield b"".join(begun)
            yield from rest[:-1]
            begun = [rest[-1]]
    if any(begun):
        yield b"".join(begun)
