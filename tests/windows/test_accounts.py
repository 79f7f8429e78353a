"""Conservation: every record that a node has read is on time, late, shed or a dead letter."""

from __future__ import annotations

from collections import Counter
from typing import Any

from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from windows.messages import NODES, Sent, a_job, an_app, events, told

import millstream as ms
from millstream.windows import Area, Job
from millstream.windows.accounts import COUNTS, residual, window_entry

PANES = 8
fidelities = st.sampled_from([None, Area(0.4), Area(0.9)])
sizes = st.sampled_from([{"range": 2}, {"range": 4, "slide": 2}, {"range": 3, "slide": 1}])


@st.composite
def happenings(draw: st.DrawFn) -> tuple[Job, list[Sent]]:
    """A job, and what its nodes tell: panes that are given up, dead letters, records that come too
    late for their pane, nodes that begin late; panes of a node a little out of order."""
    corrections = draw(st.integers(0, 2))
    job = a_job(**draw(sizes), fidelity=draw(fidelities), corrections=corrections)
    waiting: dict[str, list[Sent]] = {}
    for node in NODES:
        begin = draw(st.integers(0, 2))
        texts = draw(st.lists(st.text("xy", max_size=3), min_size=PANES, max_size=PANES))
        late = {
            pane: draw(st.lists(st.integers(0, pane - 1), max_size=2))
            for pane in range(max(1, begin), PANES)
        }
        lost = draw(st.sets(st.integers(0, PANES - 1), max_size=4))
        messages = told(
            job, node, dict(enumerate(texts)), begin=begin, end=PANES, lost=lost, late=late
        )
        dead = 0
        for message in messages[1:]:
            more = draw(st.integers(0, 2))
            dead += more
            message["nodes"][node]["dead"] = more
            message["nodes"][node]["total"] += dead
        at = draw(st.integers(1, len(messages) - 2))
        messages[at], messages[at + 1] = messages[at + 1], messages[at]
        waiting[node] = messages
    sent: list[Sent] = []
    while any(waiting.values()):
        sent.append(waiting[draw(st.sampled_from([one for one in waiting if waiting[one]]))].pop(0))
    return job, sent


def told_of(node: str, messages: list[Sent]) -> Counter[str]:
    """Returns the total of a node's manifests."""
    found = Counter[str]()
    for message in messages:
        for manifest in (message["nodes"][node],) if node in message["nodes"] else ():
            found["records"] += manifest["records"]
            found["shed"] += manifest["shed"]
            found["dead"] += manifest["dead"]
            found["late"] += sum(manifest["late"].values())
            found["total"] = max(found["total"], manifest["total"])
    return found


@given(happenings())
@settings(max_examples=examples(80), deadline=None)
def test_the_residual_is_0_for_every_node_and_window(given: tuple[Job, list[Sent]]) -> None:
    """The number of read records is the reader's own count. Panes that came after their window was
    closed are late."""
    job, messages = given
    run = ms.testing.run(an_app(job), events(messages))
    assert run.dead_letters == []
    table: dict[str, Any] = run.slate("counts.root", "1/0")
    for node in NODES:
        said, account = told_of(node, messages), table.get(f"account|{node}")
        if account is None:
            assert said["total"] == 0
            continue
        assert residual(account) == 0
        assert account["read"] == said["total"]
        assert (account["shed"], account["dead"]) == (said["shed"], said["dead"])
        assert account["on_time"] + account["late"] == said["records"] + said["late"]
    for entry in table:
        if entry.startswith("window|"):
            assert residual(table[entry]) == 0


@given(happenings())
@settings(max_examples=examples(50), deadline=None)
def test_a_closed_window_says_what_its_entry_says(given: tuple[Job, list[Sent]]) -> None:
    """The accounts by node of a closed window add up to the counts while it was open, and leave no
    residual for any node, also after corrections."""
    job, messages = given
    run = ms.testing.run(an_app(job))
    for event in events(messages):
        before = len(run.stream("counts.windows"))
        run.feed([event])
        table = run.slate("counts.root", "1/0")
        for one in run.stream("counts.windows")[before:]:
            accounts = one.value["accounts"].values()
            assert all(account["residual"] == 0 for account in accounts)
            if "correction" in one.value:
                continue
            kept = table[window_entry(one.value["from"] // job.span.slide)]
            for count in ("on_time", "shed", "dead"):
                assert sum(account[count] for account in accounts) == kept[count]


def test_what_a_node_has_told_nothing_of_is_found() -> None:
    """The reader's count is one more than the manifests account for: the residual says so."""
    job = a_job()
    messages = told(job, "a", {0: "x", 1: "xx", 2: "y"}, begin=0)
    for message in messages[2:]:
        message["nodes"]["a"]["total"] += 1
    run = ms.testing.run(an_app(job), events(messages))
    table = run.slate("counts.root", "1/0")
    assert residual(table["account|a"]) == 1
    assert residual(table[window_entry(0)]) == 1


def test_what_comes_late_changes_a_window_that_is_closed() -> None:
    """Panes and single records; the answer stays, and the counts say what it lacks."""
    job = a_job(fidelity=Area(0.3))
    run = ms.testing.run(an_app(job), events(told(job, "a", {0: "x", 1: "xx"})))
    later = told(job, "b", {0: "y", 1: "", 2: "z"}, late={2: [0, 0, 1]})
    run.feed(events(later, ts=1_000_000))
    window = run.slate("counts.root", "1/0")[window_entry(0)]
    assert {one: window[one] for one in COUNTS} == {
        "read": 7,
        "on_time": 3,
        "late": 4,
        "shed": 0,
        "dead": 0,
    }
    (said,) = run.stream("counts.windows")
    assert said.value["completeness"]["records"] == 1.0  # as far as was known then
    assert window["completeness"]["records"] is None  # more may come late, nobody knows how many
