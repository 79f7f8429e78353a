"""A slate that is taken for settled reads back as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.codec import slate_codec
from millstream.engine.cells.readback import SMALL, exceeds, fits_as, settled_as


@dataclass
class Scalars:
    n: int = 0
    x: float = 0.0
    text: str = ""
    flag: bool = False
    maybe: int | None = None
    either: float | str | None = None


@dataclass
class Limited:
    n: Annotated[int, msgspec.Meta(ge=0)] = 0


@dataclass
class Nested:
    items: list[int] = field(default_factory=list)


@dataclass
class Computed:
    n: int = 0

    def __post_init__(self) -> None:
        self.n += 1


anything = st.one_of(
    st.integers(),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), 10**4299]),
    st.floats(),
    st.text(max_size=2),
    st.text(st.characters(min_codepoint=0xD7FF, max_codepoint=0xE000, categories=None), max_size=2),
    st.booleans(),
    st.none(),
    st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    st.lists(st.integers(), max_size=1),
    st.tuples(st.integers()),
    st.binary(max_size=1),
)
NAMES = ("n", "x", "text", "flag", "maybe", "either", "other", "\ud800", 5)


def check(slate: type, held: Any) -> None:
    codec = slate_codec(slate)
    if not settled_as(slate)(held):
        return
    again = codec.decode(codec.encode(held))
    kinds = [[(name, type(item)) for name, item in fields(value)] for value in (held, again)]
    assert again == held
    assert kinds[0] == kinds[1]


def fields(slate: Any) -> list[tuple[Any, Any]]:
    return sorted((slate if type(slate) is dict else vars(slate)).items())


@given(st.dictionaries(st.sampled_from(NAMES), anything, max_size=9))
def test_dicts(held: dict[Any, Any]) -> None:
    check(dict, held)


@given(st.dictionaries(st.sampled_from(NAMES[:-1]), anything))
def test_fields(given: dict[str, Any]) -> None:
    held = Scalars()
    for name, item in given.items():
        setattr(held, name, item)
    check(Scalars, held)


def test_the_common_case_is_settled() -> None:
    """Counts, texts and sums need not be read back."""
    assert settled_as(dict)({"count": 1, "last": "x", "none": None, "é": "é"})
    assert settled_as(Scalars)(Scalars(1, 0.5, "x", True, None, "y"))
    assert not settled_as(Scalars)(Scalars(x=1))


@pytest.mark.parametrize("slate", [Limited, Nested, Computed])
def test_what_reading_may_change_is_not(slate: type) -> None:
    """Limits, containers and classes with code at their creation are left to reading back."""
    assert not settled_as(slate)(slate())


values = st.recursive(
    st.one_of(st.integers(), st.floats(allow_nan=False), st.text(max_size=9), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(st.text(max_size=2), inner, max_size=6),
        st.builds(Nested, st.lists(inner, max_size=6)),
    ),
)


@given(values, st.integers(0, 100))
def test_what_exceeds_a_size_has_more_bytes(value: Any, size: int) -> None:
    """A slate that is taken for large is large; a small one is always read back."""
    if exceeds(value, size):
        assert len(msgspec.json.encode(value)) > size


def test_a_large_slate_is_seen_from_few_of_its_parts() -> None:
    """Text, lists, entries and fields all count."""
    for value in ("x" * 257, [0] * 129, {"a": {str(n): n for n in range(52)}}, [["x" * 64]] * 5):
        assert exceeds(value, SMALL)


def test_fields_fit_as_far_as_can_be_seen() -> None:
    """Only the value of a field itself is checked, not the contents of lists and dicts."""
    assert fits_as(dict)({"a": [()], "b": {5: 5}, "c": 0.5})
    assert not fits_as(dict)({"a": ()})
    assert not fits_as(dict)({"a": float("nan")})
    assert fits_as(Nested)(Nested([()]))  # type: ignore[list-item]
    assert not fits_as(Nested)(Nested(()))  # type: ignore[arg-type]
    assert not fits_as(Scalars)(Scalars(x=1))
