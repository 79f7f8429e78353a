"""The part of the bytes that an answer has: of those that are known, and null if they are not."""

from __future__ import annotations

from windows.messages import a_job, an_app, events, told

import millstream as ms
from millstream.windows import Area
from millstream.windows.accounts import window_entry


def test_bytes_of_late_panes_are_known() -> None:
    """Late panes are not in the answer, but their manifests have their bytes."""
    job = a_job(fidelity=Area(0.3))
    run = ms.testing.run(an_app(job), events(told(job, "a", {0: "x", 1: "xx"})))
    run.feed(events(told(job, "b", {0: "yyy", 1: "yyyyyy"}), ts=1_000_000))
    window = run.slate("counts.root", "1/0")[window_entry(0)]
    assert (window["completeness"]["records"], window["completeness"]["bytes"]) == (0.25, 0.25)


def test_bytes_of_shed_panes_are_known() -> None:
    """In the answer itself, as the records are."""
    job = a_job(fidelity=Area(0.3))
    messages = told(job, "a", {0: "xxx", 1: "x"}, lost=[0])
    run = ms.testing.run(an_app(job), events([*messages, *told(job, "b", {0: "", 1: "x"})]))
    (said,) = run.stream("counts.windows")
    assert said.value["completeness"]["bytes"] == said.value["completeness"]["records"] < 1


def test_bytes_of_late_records_are_not() -> None:
    """A node counts the records that it finds late, and not their bytes."""
    job = a_job(fidelity=Area(0.3))
    run = ms.testing.run(an_app(job), events(told(job, "a", {0: "x", 1: "xx"})))
    run.feed(events(told(job, "b", {0: "y", 1: "", 2: "z"}, late={2: [0]}), ts=1_000_000))
    window = run.slate("counts.root", "1/0")[window_entry(0)]
    assert (window["read"], window["late"]) == (5, 2)
    assert window["completeness"]["bytes"] is None


def test_a_window_that_nothing_is_known_of_has_no_part() -> None:
    """Nothing came and nothing was counted: neither all of it nor none."""
    job = a_job(latency="1s")
    run = ms.testing.run(an_app(job), events(told(job, "a", {0: ""}, begin=0, end=0)))
    run.tick(by="10s")
    (said,) = run.stream("counts.windows")
    assert said.value["completeness"] == {
        "records": None,
        "bytes": None,
        "unknown_panes": 6,
        "late": 0.0,
        "misdated": 0.0,
    }


def test_a_window_without_records_is_whole() -> None:
    """If all nodes have said so."""
    job = a_job()
    messages = [one for node in "abc" for one in told(job, node, {0: "", 1: ""})]
    (said,) = ms.testing.run(an_app(job), events(messages)).stream("counts.windows")
    assert said.value["completeness"] == {
        "records": 1.0,
        "bytes": 1.0,
        "unknown_panes": 0,
        "late": 0.0,
        "misdated": 0.0,
    }


def test_a_correction_has_the_bytes_that_came_late() -> None:
    """The corrected answer has them, so they are in its part."""
    job = a_job(fidelity=Area(0.3), corrections=2)
    run = ms.testing.run(an_app(job), events(told(job, "a", {0: "x", 1: "xx"})))
    run.feed(events(told(job, "b", {0: "yyy", 1: "yyyyyy"}), ts=1_000_000))
    last = run.stream("counts.windows")[-1].value
    assert (last["correction"], last["completeness"]["bytes"]) == (2, 1.0)
