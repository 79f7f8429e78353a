"""A job as data: agents get the whole job, and its version is that of its content."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.errors import InputError
from millstream.windows import Area, Error, FieldMap, Job, Logs, Spatial, Temporal
from millstream.windows.definition import (
    JobDefinition,
    MapDefinition,
    definition_of,
    python_in,
    read_published,
)
from millstream.windows.definition_reader import placed_of
from millstream.windows.placed import PlacedJob, job_parts

names = st.sampled_from(["level", "host", "user.id", "größe"])
texts = st.text(max_size=8)
scalars = st.one_of(texts, st.integers(-(2**53), 2**53), st.floats(-1e9, 1e9), st.booleans())
parts = st.floats(0.01, 1)
algebras = st.sampled_from(
    [
        None,
        ms.algebra.count(),
        ms.algebra.sum(),
        ms.algebra.sum("bytes"),
        ms.algebra.mean("a.b"),
        ms.algebra.variance(),
        ms.algebra.min(),
        ms.algebra.max("ms"),
        ms.algebra.histogram(bins=[0, 10.5, 100]),
        ms.algebra.histogram("ms", width=5),
        ms.algebra.quantiles("ms", at=[0.5, 0.99], error=0.05),
        ms.algebra.distinct("user", error=0.05),
        ms.algebra.top(3),
        ms.algebra.top(3, of="word", by="n"),
        ms.algebra.top(2, keep=500),
    ]
)


@st.composite
def field_maps(draw: st.DrawFn) -> FieldMap:
    conditions = st.one_of(
        scalars,
        st.fixed_dictionaries({"one_of": st.lists(scalars, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"at_least": st.integers(0, 9), "below": st.integers(10, 99)}),
        st.just({"matches": "^x+"}),
        st.fixed_dictionaries({"present": st.booleans()}),
    )
    keys: st.SearchStrategy[dict[str, Any]] = st.one_of(
        st.fixed_dictionaries({"key": names}),
        st.fixed_dictionaries({"key": st.lists(names, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"key": st.fixed_dictionaries({"constant": texts})}),
        st.fixed_dictionaries({"split": names}),
    )
    return FieldMap(
        **draw(keys),
        value=draw(st.one_of(st.none(), names, st.fixed_dictionaries({"field": names}))),
        where=draw(st.one_of(st.none(), st.dictionaries(names, conditions, min_size=1))),
        numbers=draw(st.lists(names, max_size=2)),
        separator=draw(st.sampled_from(["/", " ", ""])),
    )


@st.composite
def placed_jobs(draw: st.DrawFn) -> PlacedJob:
    algebra = draw(algebras)
    bounded = algebra is not None and algebra.name in ("count", "sum", "mean", "histogram")
    fidelities = [
        st.none(),
        st.builds(Area, parts, st.booleans()),
        st.builds(Spatial, parts),
        st.builds(Temporal, st.just(1)),
        *([st.builds(Error, parts, st.floats(0.5, 0.99))] if bounded else []),
    ]
    axis: dict[str, Any] = draw(
        st.sampled_from(
            [
                {"range": "10m", "slide": "1m", "latency": "30s"},
                {"range": "1h", "pane": "10s", "begin": 1_000_000, "extent": "2d"},
                {"range": 100, "by": "records", "slide": 20},
                {"range": "1MiB", "by": "bytes"},
                {"range": 1000, "by": "sequence", "sequence": "n"},
            ]
        )
    )
    job = Job(
        map=draw(field_maps()),
        combine=algebra,
        fidelity=draw(st.one_of(*fidelities)),
        reducers=draw(st.integers(1, 9)),
        shed=draw(st.sampled_from(["order", "drawn", "never"])),
        seed=draw(st.integers(0, 2**63)),
        bounds=draw(st.sampled_from([None, "sum", "ratio"])),
        most=draw(st.sampled_from([None, 5, 0.5, (-1, 2.5)])),
        confidence=draw(st.floats(0.5, 0.99)),
        corrections=draw(st.integers(0, 5)),
        **axis,
    )
    logs = draw(
        st.sampled_from(
            [
                None,
                Logs(),
                Logs(ts="time", unit="s", grace="1s"),
                Logs(
                    pattern=r"(?P<time>\S+) (?P<level>\w+)",
                    ts="time",
                    time_format="%b %d %H:%M",
                    zone="Europe/Berlin",
                    ahead="1h",
                    jump="2h",
                ),
            ]
        )
    )
    return PlacedJob(job, "errors", ("web1", "web2"), logs)


@given(placed_jobs())
def test_a_job_of_data_is_the_same_after_its_journey(placed: PlacedJob) -> None:
    """PlacedJob -> JobDefinition -> JSON -> JobDefinition -> PlacedJob is the identity, and so is
    the version."""
    definition = definition_of(placed)
    assert definition is not None
    data = msgspec.json.encode(definition)
    arrived = msgspec.json.decode(data, type=JobDefinition)
    assert placed_of(arrived) == placed
    assert definition_of(placed_of(arrived)) == arrived
    assert arrived.version == definition.version


def count_levels(record: Any) -> list[tuple[str, int]]:
    return [(record["level"], 1)]


def when(record: Any) -> int:
    return int(record["at"])


def job_of(**options: Any) -> Job:
    given: dict[str, Any] = {"map": FieldMap(key="level"), "range": "1m", **options}
    return Job(**given)


def test_only_what_agents_need_makes_a_job_python() -> None:
    """A map, a combine, an algebra's argument or a `ts` that is a function does; `reduce`, which
    runs at the root, does not."""
    cases: list[tuple[Job, Logs, tuple[str, ...]]] = [
        (job_of(), Logs(), ()),
        (job_of(reduce=lambda key, values: values), Logs(), ()),
        (job_of(map=count_levels), Logs(), ("map",)),
        (job_of(combine=lambda a, b: a + b), Logs(), ("combine",)),
        (job_of(combine=ms.algebra.sum(when)), Logs(), ("combine",)),
        (job_of(map=count_levels), Logs(ts=when), ("map", "logs.ts")),
    ]
    for job, logs, python in cases:
        placed = PlacedJob(job, "errors", ("web1",), logs)
        assert python_in(placed) == python
        assert (definition_of(placed) is None) == bool(python)


def test_an_algebra_of_the_users_own_is_not_taken_for_the_librarys() -> None:
    """An algebra named `sum` with another lift is Python."""
    own = replace(ms.algebra.sum(), lift=lambda event: 2)
    assert python_in(PlacedJob(job_of(combine=own), "errors", ("web1",), Logs())) == ("combine",)


def test_durations_and_times_of_python_travel_as_text_and_numbers() -> None:
    """A timedelta and a datetime mean the same windows at the agent."""
    job = job_of(
        range=timedelta(minutes=10),
        slide=timedelta(minutes=1),
        latency=timedelta(seconds=5),
        begin=datetime(2026, 1, 2, tzinfo=UTC),
    )
    definition = definition_of(
        PlacedJob(job, "errors", ("web1",), Logs(grace=timedelta(seconds=2)))
    )
    assert definition is not None
    assert (definition.range, definition.latency, definition.logs) == ("10m", "5s", {"grace": "2s"})
    assert placed_of(definition).job.span == job.span


def test_a_number_that_json_cannot_carry_stays_at_home() -> None:
    """Such a job is not published, but the application is built."""
    placed = PlacedJob(job_of(seed=10**5000), "errors", ("web1",), Logs())
    assert definition_of(placed) is None
    assert placed.described()["definition"] is None


def test_the_version_is_of_the_content_and_not_of_the_nodes() -> None:
    """Another span changes the version. Another node does not, for those that run."""

    def version(job: Job, nodes: tuple[str, ...] = ("web1",)) -> str:
        definition = definition_of(PlacedJob(job, "errors", nodes, Logs()))
        assert definition is not None
        return definition.version

    assert version(job_of()) == version(job_of(), ("web1", "web2"))
    assert version(job_of()) == version(job_of(reduce=lambda key, values: 1))
    assert version(job_of()) != version(job_of(range="2m"))
    assert version(job_of()) != version(job_of(map=FieldMap(key="host")))


def test_the_description_has_what_agents_are_told() -> None:
    """A server finds a job of data in the parts of a description that came through JSON; of a
    Python job without a package, and of one over streams, there is nothing."""
    app = ms.App("logs")
    app.source("web1")
    app.add(job_of(), name="errors", nodes=["web1", "web2"], logs=Logs(ts="time"))
    app.add(job_of(map=count_levels), name="levels", nodes=["web1"], logs=Logs())
    app.add(job_of(), name="inside", nodes=["web1"])
    parts = msgspec.json.decode(msgspec.json.encode(app.checked().parts))
    jobs = job_parts(parts)
    published = read_published(msgspec.json.encode(jobs["errors"].definition))
    assert published.definition is not None
    assert placed_of(published.definition) == app.parts["errors"]
    assert published.version == published.definition.version == jobs["errors"].version
    assert [(job.agents, job.definition) for job in (jobs["levels"], jobs["inside"])] == [
        (True, None),
        (False, None),
    ]


def test_a_definition_of_a_newer_version_is_refused() -> None:
    """An agent refuses a definition that it does not fully know. The error says what to do."""
    for data in (
        b'{"version": "x", "definition": {"name": "a", "nodes": [], "map": {"key": "k"}, '
        b'"range": "1m", "speed": 9}}',
        b'{"version": "x", "definition": {"name": "a", "nodes": [], "map": {"key": "k"}, '
        b'"range": "1m", "format": 2}}',
        b"[]",
        b"{",
    ):
        with pytest.raises(InputError, match="install"):
            read_published(data)
    unknown = JobDefinition(
        name="a", nodes=(), map=MapDefinition(key="k"), range="1m", logs={"speed": 9}
    )
    with pytest.raises(InputError, match=r"job 'a'.*speed.*install"):
        placed_of(unknown)
