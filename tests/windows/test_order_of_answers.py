"""Answers of one batch come out by window, then by key."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from windows.messages import NODES, a_job, an_app, events, told

import millstream as ms
from millstream.driver.batch_plan.planner import Planner
from millstream.driver.in_process import run as run_in_process
from millstream.driver.startup import start
from millstream.engine.horizon import Lane
from millstream.model.event import Event
from millstream.settings.settings import Settings

WINDOWS = 12


def at_once(messages: list[Any]) -> list[Event]:
    """Messages of one batch: they have one time, that of the clock."""
    return [one._replace(ts=1_000) for one in events(messages)]


def log(node: str, seed: int) -> dict[int, str]:
    return {pane: "zyxab"[: 1 + (pane * 7 + seed) % 5] for pane in range(WINDOWS)}


def published(folder: Path) -> list[tuple[int, str]]:
    """The windows and keys of a sink, in the order of its rows."""
    rows = [
        json.loads(line)
        for path in sorted(folder.glob("part-*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    return [(one["value"]["from"], one["key"]) for one in rows]


texts = st.lists(st.text("abcd", max_size=4), min_size=WINDOWS, max_size=WINDOWS)


@given(st.fixed_dictionaries(dict.fromkeys(NODES, texts)), st.sampled_from([1, 2, 3]))
@settings(max_examples=examples(40), deadline=None)
def test_by_window_and_key(logs: dict[str, list[str]], size: int) -> None:
    """This holds for any values, and for any number of windows that a message closes."""
    job = a_job(range=size)
    sent = [one for node in NODES for one in told(job, node, dict(enumerate(logs[node])), begin=0)]
    run = ms.testing.run(an_app(job), at_once(sent))
    said = [(one.value["from"], one.key) for one in run.stream("counts")]
    assert said == sorted(said)
    summaries = [one.value["from"] for one in run.stream("counts.windows")]
    assert summaries == sorted(summaries)
    assert len(summaries) == WINDOWS // size
    last = {one.value["from"]: one.ts for one in run.stream("counts")}
    for one in run.stream("counts.windows"):
        assert one.ts > last.get(one.value["from"], 0)


@given(cuttings, st.integers(1, 3), lanes)
@settings(max_examples=examples(20), deadline=None)
def test_the_engine_has_the_same_times(cuts: list[int], shards: int, lane: Lane) -> None:
    """In order of event time, whatever the batches, shards and lanes."""
    job = a_job(range=1, reducers=2)
    sent = [one for at, node in enumerate(NODES) for one in told(job, node, log(node, at), begin=0)]
    check_engine_is_reference(an_app(job, "event-time"), at_once(sent), cuts, shards, lane)


def test_a_sink_has_them_in_order(tmp_path: Path) -> None:
    """As a batch is published: what stands in the files."""
    job = a_job(range=1)
    app = an_app(job)
    source = tmp_path / "panes"
    source.mkdir()
    sent = [one for at, node in enumerate(NODES) for one in told(job, node, log(node, at), begin=0)]
    (source / "1.json").write_text("".join(json.dumps(one) + "\n" for one in sent))
    sinks = {name: f"json:{tmp_path / name}" for name in ("counts", "counts.windows")}
    addresses = {"counts.panes": f"json:{source}"}
    run_in_process(
        app,
        Settings.of(
            "logs", tmp_path / "store", addresses, sinks=sinks, available_now=True, shards=2
        ),
    )
    for name in sinks:
        found = published(tmp_path / name)
        assert len({begin for begin, _ in found}) == WINDOWS
        assert found == sorted(found)


@pytest.mark.parametrize("reducers", [1, 3])
@pytest.mark.parametrize("third", [{}, {0: "za", 1: "b", 2: "zy"}, {9: "za", 10: "b", 11: "zy"}])
def test_whatever_closed_the_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, third: dict[int, str], reducers: int
) -> None:
    """In one batch the latency of some windows is over, and the last pane of others comes: their
    answers are published by window, then by key, of whichever reducer they are."""
    job = a_job(range=1, latency="10s", reducers=reducers)
    source = tmp_path / "panes"
    source.mkdir()
    names = ("counts", "counts.windows")

    def run(number: int, messages: list[Any]) -> None:
        text = "".join(json.dumps(one) + "\n" for one in messages)
        (source / f"{number}.json").write_text(text)
        sinks = {name: f"json:{tmp_path / name}" for name in names}
        addresses = {"counts.panes": f"json:{source}"}
        at_minute = partial(Planner, clock=lambda: number * 60_000_000)
        monkeypatch.setattr(start, "Planner", at_minute)
        given = Settings.of("logs", tmp_path / "store", addresses, sinks=sinks, available_now=True)
        run_in_process(an_app(job), given.changed(shards=2))

    run(1, [one for node in "ab" for one in told(job, node, log(node, ord(node)), begin=0)])
    assert published(tmp_path / "counts.windows") == []
    run(2, told(job, "c", third) if third else [])
    assert len({*published(tmp_path / "counts.windows")}) >= WINDOWS
    for name in names:
        found = published(tmp_path / name)
        assert found == sorted(found)


def test_a_latency_closes_windows_in_their_order() -> None:
    """Windows whose latency is over at the same moment have their times in their order, so that
    the latest answer of a key is that of the latest window."""
    job = a_job(range=1, latency="10s")
    sent = [one for node in "ab" for one in told(job, node, log(node, ord(node)), begin=0)]
    run = ms.testing.run(an_app(job), at_once(sent)).tick(by="1m")
    said = [(one.value["from"], one.key) for one in run.stream("counts")]
    assert len({begin for begin, _ in said}) == WINDOWS
    assert said == sorted(said)
    times = [one.ts for one in run.stream("counts")]
    assert times == sorted({*times})
