"""The word count over skewed nodes: against a plain count, and how far off it is with less."""

from __future__ import annotations

import doctest
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import millstream as ms
from examples.imr import by_window, word_traffic, word_truth
from examples.imr.incomplete import drawn, messages_of, panes_of, spatial, temporal, whole
from examples.imr.word_traffic import Words, log
from examples.imr.word_truth import WordErrors, measure, true_counts
from examples.skewed_words import LOGS, NODES, application, word_count

SIZE = 50
JOB = word_count(range=SIZE, pane=10)


def some_logs(given: Words) -> dict[str, list[dict[str, Any]]]:
    return {node: list(log(given, number)) for number, node in enumerate(given.nodes)}


def check(run: ms.testing.Run, true: list[Counter[str]]) -> None:
    """Every window has its counts, and its shares are of them."""
    assert run.dead_letters == []
    for window, counts in enumerate(true):
        begin = window * SIZE
        found = [one for one in run.stream("words") if one.value["from"] == begin]
        assert {one.key: one.value["value"] for one in found} == counts
        said = [one for one in run.stream("shares") if one.value["from"] == begin]
        assert {one.key: one.value["count"] for one in said} == counts
        assert sum(one.value["share"] for one in said) == pytest.approx(1)
        assert all(one.value["coverage"]["area"] == 1 for one in (*found, *said))
    assert run.slates("shares") == {}


@pytest.mark.parametrize("reducers", [1, 3])
def test_every_window_has_its_counts_and_shares(reducers: int) -> None:
    """From files: as a plain count of the logs says, with one reducer or several."""
    logs = some_logs(Words(2 * SIZE + 1))
    app = application("words", word_count(range=SIZE, pane=10, reducers=reducers))
    check(ms.testing.run(app, logs), true_counts(logs, SIZE))


def test_agents_give_the_same() -> None:
    """The messages of agents give the same answers in the application for agents."""
    logs = some_logs(Words(2 * SIZE + 1))
    app = application("words", JOB, logs=LOGS)
    records = {node: [(one, one["time"] * 1_000) for one in log] for node, log in logs.items()}
    messages = [one for node in NODES for one in messages_of(JOB, node, records[node])]
    check(ms.testing.run(app, {"words.panes": messages}), true_counts(logs, SIZE))


def errors(part: float) -> dict[str, WordErrors]:
    """By specification, for a window of ten nodes, the mean of three seeds for what is drawn."""
    given = Words(1_000, nodes=tuple(f"n{n}" for n in range(10)), vocabulary=200)
    job, panes = word_count(range=1_000, pane=100), range(10)
    made = panes_of(
        job,
        {node: [(one, 0) for one in log(given, n)] for n, node in enumerate(given.nodes)},
    )
    every = whole(given.nodes, panes)
    return {
        "drawn": measure(job, made, every, drawn(given.nodes, panes, part, 5)),
        "spatial": measure(job, made, every, spatial(given.nodes, panes, part)),
        "temporal": measure(job, made, every, temporal(given.nodes, panes, part, 5)),
    }


def test_shares_survive_what_counts_do_not() -> None:
    """Figure 9: half of the data is half of the counts, however it is chosen; shares stay right if
    all nodes are in it, and do not if half of the nodes are missing."""
    found = errors(0.5)
    assert all(one.count == pytest.approx(0.5, abs=0.08) for one in found.values())
    assert found["drawn"].frequency < 0.25
    assert found["spatial"].frequency < 0.25
    assert found["temporal"].frequency > 2 * found["drawn"].frequency
    assert found["temporal"].words_found < found["drawn"].words_found


def test_all_of_the_data_has_no_error() -> None:
    """Every specification of the whole is the whole."""
    assert set(errors(1.0).values()) == {WordErrors(0.0, 0.0, 0.0, 1.0)}


def test_words_are_skewed() -> None:
    """A word is likelier at its home, every tenth is only there; the same for the same seed."""
    given = Words(500)
    counts = [
        Counter(word for one in log(given, n) for word in one["line"].split()) for n in range(4)
    ]
    assert counts[0]["word0"] > 4 * fmean(one["word0"] for one in counts[1:])
    assert [bool(one["word9"]) for one in counts] == [False, False, False, True]
    assert list(log(given, 1)) == list(log(given, 1))
    assert list(log(given, 1)) != list(log(Words(500, seed=8), 1))


def test_the_script_writes_logs_for_agents_and_for_spark(tmp_path: Path) -> None:
    """Both have the same records, and one more than was asked for."""
    word_traffic.main(["--out", str(tmp_path), "--records", "20"])
    for node in NODES:
        text = (tmp_path / f"{node}.log").read_text()
        assert text == (tmp_path / node / "1.jsonl").read_text()
        assert len(text.splitlines()) == 21


@pytest.mark.parametrize("module", [by_window, word_truth])
def test_the_examples_of_the_modules_hold(module: Any) -> None:
    """Their doctests."""
    found = doctest.testmod(module)
    assert (found.failed, found.attempted > 0) == (0, True)
