"""The root lets go of what no window needs, and waits for nobody who is absent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from engine.in_process import InProcess
from windows.messages import NODES, a_job, an_app, answers, events, joined, told, windows
from windows.told import a_job as a_bounded_job
from windows.told import data, lost

import millstream as ms
from millstream.model import slate
from millstream.windows import Area, Error, Spatial, Temporal
from millstream.windows.bounds.strata import layout
from millstream.windows.panes.pane_rank import rank


def in_turn(*of_nodes: list[Any]) -> list[Any]:
    return [one for of in zip(*of_nodes, strict=True) for one in of]


def entries(run: ms.testing.Run, reducer: str) -> Counter[str]:
    """Returns the number of entries of each kind in a reducer's table."""
    return Counter(entry.partition("|")[0] for entry in run.slates("counts.root")[reducer])


def test_a_node_that_begins_after_a_change_of_reducers_is_absent_before_it() -> None:
    """Windows of the old number do not wait for it for good."""
    job = a_job()
    a, b = (told(job, node, dict.fromkeys(range(12), "x"), begin=0) for node in "ab")
    change = {"tree": "", "reducers": 4}
    c = told(job, "c", {10: "z", 11: "z"}, begin=10)
    run = ms.testing.run(an_app(job), events([*a[:7], *b[:7], change, *a[7:], *b[7:], *c]))
    closed = [begin for begin, _ in windows(run)]
    assert {0, 2, 4, 6, 8} <= {*closed}


def test_a_node_that_begins_before_all_others_finds_their_panes() -> None:
    """Windows that begin before the first pane of all exist only once it is there. They have the
    earlier panes, though other windows were closed in between."""
    job = a_job(range=5, slide=2, fidelity=Spatial(0.2))
    a, b = (told(job, node, dict.fromkeys(range(13), "x"), begin=0) for node in "ab")
    c = told(job, "c", dict.fromkeys(range(7, 13), "z"), begin=7)
    run = ms.testing.run(an_app(job), events([*c, a[0], b[0], *a[1:], *b[1:]]))
    assert run.slate("counts.root", "1/0")["meta"]["open"] == []
    assert {begin: said.get("z") for begin, said in answers(run).items()} == {
        **{0: None, 2: None},
        **{4: 2, 6: 4, 8: 5, 10: 3, 12: 1},
    }


def test_late_records_do_not_fill_the_tables_of_a_number_that_was_left() -> None:
    """A node that goes on finding records of an old pane sends them where that pane was; its new
    panes are not kept there."""
    job = a_job()
    late = {pane: [0] for pane in range(20, 60)}
    of = [told(job, node, dict.fromkeys(range(60), "x"), begin=0, late=late) for node in NODES]
    sent = in_turn(*of)
    sent.insert(30, {"tree": "", "reducers": 2})
    run = ms.testing.run(an_app(job), events(sent))
    assert run.dead_letters == []
    for reducer in ("1/0", "2/0", "2/1"):
        assert entries(run, reducer)["board"] <= 2
        assert entries(run, reducer)["pane"] <= 6


def test_a_node_far_ahead_does_not_keep_the_panes_of_others() -> None:
    """Its windows are closed on its own word, long before theirs: theirs go all the same."""
    job = a_job(range=2, fidelity=Temporal(0.3))
    a = told(job, "a", dict.fromkeys(range(1_000, 1_010), "x"), begin=1_000)
    others = [told(job, node, dict.fromkeys(range(100), "x"), begin=0) for node in "bc"]
    run = ms.testing.run(an_app(job), events([*a, *in_turn(*others)]))
    assert len(windows(run)) == 55
    assert entries(run, "1/0")["board"] <= 15


def test_a_pane_that_was_given_up_corrects_nothing() -> None:
    """Agents that learn of a closed window give its panes up, which does not change any answer. The
    window's own count of known records continues."""
    job = a_job(range=6, fidelity=Area(0.5), corrections=2)
    logs = dict.fromkeys(range(6), "x")
    of = [told(job, node, logs, begin=0, lost=range(3, 6)) for node in NODES]
    run = ms.testing.run(an_app(job), events(in_turn(*of)))
    assert windows(run) == [(0, "fidelity")]
    table = run.slate("counts.root", "1/0")
    (entry,) = (table[one] for one in table if one.startswith("window|") and table[one]["why"])
    assert (entry["shed"], entry["completeness"]["records"]) == (9, 0.5)


def test_late_records_may_be_told_of_before_their_pane() -> None:
    """As when the pane waits at a parent, or for its round: the answer is not exact then, and the
    window's accounts have them."""
    job = a_job(range=4, combine=ms.algebra.sum())
    begun, first, second, *rest = told(
        job, "a", {0: "xy", 1: "x", 2: "x", 3: "x"}, begin=0, late={1: [0]}
    )
    for order in ([first, second], [second, first]):
        run = ms.testing.run(an_app(job, nodes=["a"]), events([begun, *order, *rest]))
        (summary,) = (one.value for one in run.stream("counts.windows"))
        account = summary["accounts"]["a"]
        assert (account["read"], account["late"], account["residual"]) == (6, 1, 0)
        assert summary["total"]["method"] == "worst case"
        assert (summary["why"], summary["coverage"]["missing"]) == ("late", {"late": 1})
        assert entries(run, "1/0")["tardy"] == 1  # as long as its window is shown
        more = told(job, "a", dict.fromkeys(range(4, 500), "x"), begin=4)
        run.feed(events(more, ts=1_000_000))
        assert entries(run, "1/0")["tardy"] == 0


@pytest.mark.parametrize(("shed", "sampled"), [("order", False), ("drawn", True)])
def test_drawn_panes_that_were_shed_in_order_are_no_sample(shed: str, sampled: bool) -> None:
    """The panes that came are of the time in which the node was fast. Lowering the rank is fair."""
    job = a_bounded_job("count", 20, fidelity=Area(0.5, drawn=True), shed=shed)
    told_of: dict[tuple[str, int], Any] = {}
    for pane in range(20):
        of = rank(job.seed, "a", pane, 20)
        told_of["a", pane] = data(5) if of < 5 else lost(5, "shed" if of < 10 else "drawn")
    found = layout(job, ["a"], range(20), told_of)
    assert bool(found.strata) == sampled
    if not sampled:
        assert found.lost_records == 5 * found.lost > 0


SPREAD = """
from millstream.windows.bounds.stratified_sample import Sampling
from millstream.windows.bounds.strata import Stratum
for size in range(20, 60):
    units = tuple((f"node {at % 3}", at) for at in range(size))
    records = {unit: at**3 % 9973 for at, unit in enumerate(units)}
    one = Stratum(units, frozenset(units[::2]), units[1::2], records)
    print(Sampling([one]).total({unit: records[unit] % 13 for unit in units}))
"""


def test_bounds_are_the_same_in_every_process() -> None:
    """To the last digit, though the order of a set is another in each."""
    said = {
        subprocess.run(
            [sys.executable, "-c", SPREAD],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert len(said) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fidelity": Error(0.05)}, "fidelity Error must have a value that can be bounded"),
        ({"latency": "0s"}, "latency must be over 0"),
    ],
)
def test_what_could_never_work_is_refused(options: dict[str, Any], said: str) -> None:
    """An error that cannot be bounded would never close a window."""
    with pytest.raises(ms.DefinitionError, match=said):
        a_job(**options)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([1, 2], "name of a node must be text; got 1"),
        (["a", ""], "name of a node must be text; got ''"),
        ({"a": "log", "b": "log"}, "must have its own stream.*a, b"),
    ],
)
def test_nodes_that_cannot_be_told_apart_are_refused(nodes: Any, said: str) -> None:
    """With one stream for two nodes all records would be the last one's."""
    app = ms.App("logs")
    app.source("log")
    with pytest.raises(ms.DefinitionError, match=said):
        app.add(a_job(), name="counts", nodes=nodes)


@pytest.mark.parametrize("latency", [None, "1h"])
def test_many_windows_take_linear_time(
    latency: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as many windows in one batch let the root look at twice as many entries, not at four
    times as many: what was let go is not looked at again. So it is with a latency, which sets a
    timer for each window."""

    def looked_at(count: int) -> int:
        seen = [0]
        real = slate.overlay

        def counting(changed: Any, stored: Any, reverse: bool = False) -> Any:
            seen[0] += len(changed)
            return real(changed, stored, reverse)

        with monkeypatch.context() as patched:
            patched.setattr(slate, "overlay", counting)
            job = a_job(range=1, latency=latency)
            sent = told(job, "a", {pane: "x" if pane % 7 == 0 else "" for pane in range(count)})
            engine = InProcess(an_app(job, nodes="a").checked())
            engine.batch(events(sent))
        assert len(engine.streams["counts.windows"]) == count
        return seen[0]

    assert looked_at(800) < 2.5 * looked_at(400)


def test_a_message_costs_the_same_however_many_nodes_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight times as many nodes, in messages of the same size, let the ledger and the root read and
    write hardly more bytes of their tables for each message, until a window is closed."""

    def bytes_a_message(count: int) -> float:
        seen = [0]
        read, write = slate.Table._stored, slate.Table._change

        def reading(table: slate.Table, entry: str) -> bytes | None:
            found = read(table, entry)
            seen[0] += len(found or b"")
            return found

        def writing(table: slate.Table, entry: str, value: bytes | None) -> None:
            seen[0] += len(value or b"")
            write(table, entry, value)

        job = a_job(range=4)
        nodes = [f"node{number:03d}" for number in range(count)]
        of = [told(job, node, dict.fromkeys(range(3), "x"), begin=0) for node in nodes]
        groups = [of[at : at + 5] for at in range(0, count, 5)]
        begun = [joined(job, "", [one[0] for one in group]) for group in groups]
        sent = [joined(job, "", [one[at] for one in group]) for at in (1, 2) for group in groups]
        engine = InProcess(an_app(job, nodes=nodes).workflow(), 1)
        engine.batch(events(begun))
        with monkeypatch.context() as patched:
            patched.setattr(slate.Table, "_stored", reading)
            patched.setattr(slate.Table, "_change", writing)
            engine.batch(events(sent, ts=9_000))
        assert engine.letters == []
        return seen[0] / len(sent)

    assert bytes_a_message(400) < 1.1 * bytes_a_message(50)
