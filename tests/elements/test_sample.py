"""sample: a fraction of the events, the same ones in every run."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import pytest
from elements.example_files import check_page, run_example, told
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.elements import Sample
from millstream.errors import DefinitionError

some_events = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.sampled_from(["", "ann", "bob", "é"]),
        st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2),
    ),
    max_size=20,
)
seeds = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)


def sampled(given: list[Any], **configured: Any) -> list[tuple[int, str, Any]]:
    app = ms.App("sampling")
    app.source("visits")
    app.output("some")
    app.add(Sample(**configured), keys="visits", publishes="some")
    run = ms.testing.run(app, [("visits", *one) for one in given])
    return [(event.ts - 1, event.key, event.value) for event in run.stream("some")]


def number(drawn: str, seed: int) -> float:
    """A hash as a number from 0 to 1, as a definition."""
    salt = seed.to_bytes(8, "big", signed=True)
    return int(blake2b(drawn.encode(), digest_size=8, salt=salt).hexdigest(), 16) / 2**64


def as_json(one: object) -> str:
    return json.dumps(one, sort_keys=True)


@settings(max_examples=examples(60))
@given(given=some_events, fraction=st.floats(0.001, 0.999), seed=seeds)
def test_of_events_as_defined(given: list[Any], fraction: float, seed: int) -> None:
    """By event, it takes those whose time, key and value have a hash below the fraction."""
    taken = sampled(given, fraction=fraction, seed=seed)
    by_hash = []
    for ts, key, value in given:
        content = json.dumps(value, sort_keys=True, separators=(",", ":"))
        if number(f"visits\0{ts}\0{key}\0{content}", seed) < fraction:
            by_hash.append((ts, key, value))
    assert sorted(map(as_json, taken)) == sorted(map(as_json, by_hash))


@settings(max_examples=examples(60))
@given(given=some_events, fraction=st.floats(0.001, 0.999), seed=seeds)
def test_of_keys_as_defined(given: list[Any], fraction: float, seed: int) -> None:
    """By key, it takes all events of the keys whose hash is below the fraction, and no others."""
    taken = sampled(given, fraction=fraction, seed=seed, by="key")
    by_hash = [one for one in given if number(one[1], seed) < fraction]
    assert sorted(map(as_json, taken)) == sorted(map(as_json, by_hash))


@settings(max_examples=examples(60))
@given(given=some_events, by=st.sampled_from(["event", "key"]), seed=seeds)
def test_none_and_all(given: list[Any], by: str, seed: int) -> None:
    """A fraction of 0 takes nothing, of 1 everything."""
    assert sampled(given, fraction=0, by=by, seed=seed) == []
    assert len(sampled(given, fraction=1, by=by, seed=seed)) == len(given)


def test_it_is_about_the_fraction() -> None:
    """Of 4,000 events about a quarter is taken with either hash. Another seed takes others."""
    given = [(ts, f"user{ts}", None) for ts in range(4_000)]
    for by in ("event", "key"):
        first = sampled(given, fraction=0.25, by=by)
        second = sampled(given, fraction=0.25, by=by, seed=1)
        assert 880 < len(first) < 1_120
        assert 880 < len(second) < 1_120
        both = set(map(as_json, first)) & set(map(as_json, second))
        assert 180 < len(both) < 320  # a sixteenth: the two have nothing to do with one another


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ({"fraction": 1.5}, "fraction must be from 0 to 1; got 1.5"),
        ({"fraction": -0.1}, "fraction must be from 0 to 1; got -0.1"),
        ({"fraction": float("nan")}, "fraction must be from 0 to 1; got nan"),
        ({"fraction": "1%"}, "fraction must be a number; got str '1%'"),
        ({"fraction": 0.5, "by": "user"}, "by must be one of 'event', 'key'; got str 'user'"),
        ({"fraction": 0.5, "seed": 2**63}, "seed must be a whole number of 64 bits"),
        ({"fraction": 0.5, "seed": "x"}, "seed must be a whole number; got str 'x'"),
    ],
)
def test_a_wrong_configuration_is_refused(configured: dict[str, Any], message: str) -> None:
    """The error is raised when the element is made."""
    with pytest.raises(DefinitionError, match=f"^element Sample: {message}"):
        Sample(**configured)


def test_the_example_emits_what_the_page_says() -> None:
    """examples/elements/sample.toml over its data gives the lines of docs/elements/sample.md."""
    check_page("sample.md", "sample")
    run = run_example("sample")
    assert [event.value for event in run.stream("some")] == told("sample.md")
    assert run.dead_letters == []
