from __future__ import annotations

import csv
import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_events.datasets import header_bytes, header_text, records
from lc_events.datasets.records import splitter_for
from lc_events.errors import StorageError


def feed(splitter, blocks, *, finish=True):
    """All records, as text of their own, and the splitter."""
    stream = b""
    ends = []
    for block in blocks:
        split = splitter.feed(block)
        assert split.count == len(split.ends)
        ends += [len(stream) + end for end in split.ends]
        stream += split.data
    if finish and splitter.can_finish():
        stream += splitter.finish().data
        ends.append(len(stream))
    starts = [0, *ends]
    found = [stream[start:end] for start, end in zip(starts, ends, strict=False)]
    assert all(record.endswith(b"\n") for record in found)
    return [record[:-1] for record in found]


def parsed(format_name, data, **options):
    return feed(splitter_for(format_name, offset=0), [data], **options)


def chunked(data, cuts):
    edges = [0, *sorted(cut for cut in cuts if cut <= len(data)), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\n\nb\n", [b"a", b"", b"b"]),
        (b"a\r\nb\r\r\nc\rd\n", [b"a", b"b\r", b"c\rd"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [b"a", b"\xef\xbb\xbfb"]),
        (b"a\x0bb\x0c\x1c\x85\xe2\x80\xa8c\n", [b"a\x0bb\x0c\x1c\x85\xe2\x80\xa8c"]),
        (b'"a\nb"\n', [b'"a', b'b"']),
        (b"a\nb", [b"a", b"b"]),
        (b"a\nb\r", [b"a", b"b"]),
        (b"\xef\xbb\xbf", []),
        (b"\x00\xff\n", [b"\x00\xff"]),
    ],
)
def test_lines_of_a_txt_file(data, expected):
    assert parsed("TXT", data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"h\n", []),
        (b"h", []),
        (b"h\na,b\n", [b"a,b"]),
        (b'\xef\xbb\xbf"h\n1",i\r\na,b\r\n', [b"a,b"]),
        (b'h\n"a\nb",c\nd\n', [b'"a\nb",c', b"d"]),
        (b'h\r\n"a\r\nb",c\r\nd\r\n', [b'"a\r\nb",c', b"d"]),
        (b'h\n"a""\n""b"\nc\n', [b'"a""\n""b"', b"c"]),
        (b'h\n5" pipe,x\n6" pipe,"y\nz"\n', [b'5" pipe,x', b'6" pipe,"y\nz"']),
        (b'h\n"a"b"c\nd\n', [b'"a"b"c', b"d"]),
        (b'h\n"a"\nb', [b'"a"', b"b"]),
        (b'h\na,"b"', [b'a,"b"']),
        (b'h\n,\n""\n\n', [b",", b'""', b""]),
        (b'h\na,"b\nc', []),
    ],
)
def test_records_of_a_csv_file(data, expected):
    assert parsed("CSV", data) == expected


def test_the_header_is_kept_as_it_stands():
    splitter = splitter_for("csv", offset=0)
    assert feed(splitter, [b'\xef\xbb\xbfname,"a\n', b'b"\r', b"\n1,2\n"]) == [b"1,2"]
    assert splitter.header == b'name,"a\nb"'
    assert (splitter.begin, splitter.offset) == (15, 19)


@given(st.binary(max_size=40))
def test_any_header_survives_as_text(raw):
    text = header_text(raw)
    assert header_bytes(text) == raw
    text.encode("utf-8")


_alphabet = {"txt": b"ab\r\n\xef\xbb\xbf", "csv": b'a,"\r\n \xef\xbb\xbf'}
_cuts = st.lists(st.integers(0, 60), max_size=8)


def _bytes_of(format_name):
    pieces = [bytes([byte]) for byte in _alphabet[format_name]] + [b"\r\n", b"\xef\xbb\xbf", b'"a\nb"', b'""', b"a,b\n"]
    return st.lists(st.sampled_from(pieces), max_size=30).map(b"".join)


@pytest.mark.parametrize("format_name", ["txt", "csv"])
@given(data=st.data(), cuts=_cuts)
def test_any_chunking_gives_the_same_records(format_name, data, cuts):
    content = data.draw(_bytes_of(format_name))
    whole, pieces = splitter_for(format_name, offset=0), splitter_for(format_name, offset=0)
    assert feed(pieces, chunked(content, cuts)) == feed(whole, [content])
    assert (pieces.header, pieces.begin, pieces.offset) == (whole.header, whole.begin, whole.offset)
    assert pieces.open_quote() == whole.open_quote()


@pytest.mark.parametrize("format_name", ["txt", "csv"])
@given(data=st.data(), cuts=_cuts)
def test_counting_only_counts_the_same(format_name, data, cuts):
    content = data.draw(_bytes_of(format_name))
    counting = splitter_for(format_name, offset=0, keep=False)
    splits = [counting.feed(block) for block in chunked(content, cuts)]
    assert sum(split.count for split in splits) == len(parsed(format_name, content, finish=False))
    assert all(not split.data and not split.ends for split in splits)


@pytest.mark.parametrize("format_name", ["txt", "csv"])
@given(data=st.data())
def test_a_splitter_can_begin_after_any_record(format_name, data):
    content = data.draw(_bytes_of(format_name))
    known = parsed(format_name, content)
    begun = splitter_for(format_name, offset=0)
    offsets = [begun.offset for at in range(len(content)) if begun.feed(content[at : at + 1]).count]
    for count, offset in enumerate(offsets, 1):
        assert feed(splitter_for(format_name, offset=offset), [content[offset:]]) == known[count:]


@given(st.lists(st.lists(st.text(alphabet='ab,"\n\r é', max_size=5), min_size=1, max_size=4), max_size=6), _cuts)
def test_what_python_s_csv_module_writes_is_read_back(rows, cuts):
    written = io.StringIO(newline="")
    csv.writer(written).writerows([["h"], *rows])
    content = written.getvalue().encode()
    found = feed(splitter_for("csv", offset=0), chunked(content, cuts))
    assert [next(csv.reader(io.StringIO(record.decode(), newline="")), []) for record in found] == rows


@given(_bytes_of("csv"))
def test_python_s_csv_module_counts_the_same_records(content):
    # That module takes a lone CR for a line end and drops blank lines.
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"").replace(b"\xef\xbb\xbf", b"").replace(b"\xef", b"")
    rows = list(csv.reader(io.StringIO(content.decode(errors="replace"), newline="")))
    found = splitter_for("csv", offset=0)
    count = sum(record != b"" for record in feed(found, [content]))
    if found.open_quote() is None and found.header:
        assert count == len([row for row in rows if row]) - 1


def test_a_partial_line_that_goes_on_is_a_record_of_its_own():
    splitter = splitter_for("txt", offset=0)
    assert feed(splitter, [b"abc"]) == [b"abc"]
    assert feed(splitter, [b"def\nx\n"]) == [b"def", b"x"]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("format_name", ["txt", "csv"])
def test_the_line_end_of_a_partial_line_that_counted_already_is_none_of_its_own(format_name, line_end):
    splitter = splitter_for(format_name, offset=9, after_partial=True)
    assert feed(splitter, [line_end[:1], line_end[1:], b"x\n"]) == [b"x"]
    assert splitter.begin == 9 + len(line_end)


def test_half_a_line_end_or_an_open_quote_is_never_taken_for_a_record():
    splitter = splitter_for("txt", offset=9, after_partial=True)
    splitter.feed(b"\r")
    assert splitter.has_partial
    assert not splitter.can_finish()
    splitter = splitter_for("csv", offset=0)
    splitter.feed(b'h\na,"b\n')
    assert not splitter.can_finish()
    assert splitter.open_quote() == 4


@pytest.mark.parametrize("block_size", [1, 7, 64, 1000])
def test_a_quoted_field_that_is_too_long_is_an_error_with_its_place(monkeypatch, block_size):
    monkeypatch.setattr(records, "MAX_QUOTED_BYTES", 50)
    fine = b'h\n1,"' + b"x" * 48 + b'",y\n'
    for tail, quote in (
        (b'2,"' + b"y" * 49 + b'",\n', 2),
        (b'2,"' + b"\n" * 200, 2),
        (b'"2","' + b'""' * 30 + b'"\n', 4),
    ):
        content = fine + tail
        splitter = splitter_for("csv", offset=0)
        blocks = [content[at : at + block_size] for at in range(0, len(content), block_size)]
        assert feed(splitter, blocks, finish=False) == [fine[2:-1]]
        assert splitter.error is not None
        assert splitter.error.code == "csv_quote"
        assert f"at byte {len(fine) + quote} " in str(splitter.error)
        assert splitter.feed(b'"\n').count == 0


def test_a_header_without_an_end_is_an_error(monkeypatch):
    monkeypatch.setattr(records, "MAX_HEADER_BYTES", 50)
    splitter = splitter_for("csv", offset=0)
    assert feed(splitter, [b"x" * 30, b"x" * 30]) == []
    assert splitter.error is not None
    assert splitter.error.code == "csv_header"
    splitter = splitter_for("csv", offset=0)
    feed(splitter, [b'a,"' + b"x" * 60])
    assert splitter.error.code == "csv_quote"
    assert "at byte 2 " in str(splitter.error)


def test_a_line_of_many_blocks_is_given_out_as_it_comes():
    splitter = splitter_for("txt", offset=0)
    block = b"x" * 100_000
    given_out = [len(splitter.feed(block).data) for _ in range(50)]
    assert given_out == [100_000] * 50
    assert splitter.feed(b"\n").count == 1
    splitter = splitter_for("csv", offset=0)
    splitter.feed(b'h\n"a",')
    assert [len(splitter.feed(block).data) for _ in range(50)][1:] == [100_000] * 49


def test_other_formats_are_refused():
    with pytest.raises(StorageError, match="use txt or csv") as caught:
        splitter_for("parquet", offset=0)
    assert caught.value.code == "unsupported"
