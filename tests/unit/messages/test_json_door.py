from __future__ import annotations

import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_events.errors import RefusedError
from lc_events.messages.json import INT64_MAX, UINT64_MAX, dumps, loads, loads_object

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), INT64_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
documents = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


@given(documents)
def test_whatever_is_accepted_can_be_written_and_read_again(value: object):
    assert loads(dumps(value)) == value


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_payload_is_either_read_or_refused(payload: bytes | str):
    try:
        value = loads(payload)
    except RefusedError:
        return
    assert loads(dumps(value)) == value


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e400"])
def test_a_number_that_is_not_finite_is_refused(number: str):
    with pytest.raises(RefusedError):
        loads(f'{{"n": {number}}}')


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 0])
def test_a_64_bit_integer_stays_an_integer(number: int):
    assert loads(str(number)) == number


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**30, 10**300])
def test_an_integer_beyond_64_bits_is_refused_not_rounded(number: int):
    with pytest.raises(RefusedError, match="64 bits"):
        loads(f'{{"n": [{number}]}}')


def test_results_may_hold_unsigned_integers_where_the_caller_allows_them():
    assert loads(str(UINT64_MAX), max_integer=UINT64_MAX) == UINT64_MAX
    with pytest.raises(RefusedError):
        loads(str(UINT64_MAX + 1), max_integer=UINT64_MAX)


def test_long_digits_inside_a_string_or_a_fraction_are_no_integers():
    assert loads('{"a": "99999999999999999999999", "b": 0.99999999999999999999999}') == {
        "a": "99999999999999999999999",
        "b": 1.0,
    }


def test_an_integer_hidden_behind_a_repeated_key_is_refused_too():
    with pytest.raises(RefusedError):
        loads('{"n": 99999999999999999999999, "n": 1}')


@pytest.mark.parametrize("depth", [65, 500, 1000, 100_000])
def test_deep_nesting_is_refused_also_beside_a_long_number(depth: int):
    with pytest.raises(RefusedError):
        loads("[" * depth + "1234567890123456789" + "]" * depth)


def test_sixty_four_levels_are_accepted():
    assert loads("[" * 64 + "]" * 64) is not None


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"3", b"null", b'"text"', b'{"a":1}xyz', b"\xff", b'\xef\xbb\xbf{"a":1}']
)
def test_only_an_object_passes_where_an_object_is_asked_for(payload: bytes):
    with pytest.raises(RefusedError):
        loads_object(payload)


def test_what_is_written_is_compact_and_keeps_the_order_of_keys():
    assert dumps({"b": 1, "a": [1.0, None, "ü"]}) == '{"b":1,"a":[1.0,null,"ü"]}'.encode()


def test_a_lone_surrogate_is_refused():
    with pytest.raises(RefusedError):
        loads(b'"\\ud800"')
    with pytest.raises(RefusedError):
        loads('"\ud800"')


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_kept_to_the_last_bit(number: float):
    kept = loads(orjson.dumps(number))
    assert isinstance(kept, float)
    assert math.copysign(1, kept) == math.copysign(1, number)
    assert kept == number
