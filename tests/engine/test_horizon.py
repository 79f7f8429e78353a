"""The progress of event time, due work, and the lane of a batch."""

from __future__ import annotations

from typing import Any

import pytest
from in_process import InProcess
from progress_counts import by_function, set_fields

import millstream as ms
from millstream.driver.batch_plan.next_beat import next_beat
from millstream.engine.horizon import Lane, earliest_of, horizon_of, is_due, lane_of, step_from
from millstream.engine.progress import advanced
from millstream.model.workflow import Order, Workflow
from millstream.stores.progress import Progress, SourceProgress

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SECOND = 1_000_000


def workflow(order: Order = "event-time", delay: int = 0, **sources: dict[str, Any]) -> Workflow:
    """A workflow with these sources, and a cycle whose feedback has a delay if one is given."""
    app = ms.App("h", order=order)
    for name, given in (sources or {"a": {}}).items():
        app.source(name, **given)
    first = next(iter(sources or ["a"]))
    if delay:
        app.update(first, "again", publishes="again", name="u")(lambda event, slate: None)
        app.stream("again", delay=f"{delay}us")
    else:
        app.update(first, name="u")(lambda event, slate: None)
    return app.workflow()


def seen(**sources: tuple[int | None, int]) -> Progress:
    """Progress where each source has (highest ts, clock of its last record)."""
    return Progress(sources={name: SourceProgress(*given) for name, given in sources.items()})


def test_the_least_of_the_sources() -> None:
    """The horizon is that of the source that is furthest behind."""
    both = workflow(a={}, b={})
    assert horizon_of(both, seen(a=(50, 0), b=(30, 0)), 1, 0, False) == 30


def test_lateness_holds_the_horizon_back() -> None:
    """A source's allowed lateness is taken off its highest time."""
    both = workflow(a={"lateness": "25us"}, b={})
    assert horizon_of(both, seen(a=(50, 0), b=(30, 0)), 1, 0, False) == 25


def test_a_source_that_has_brought_nothing_holds_everything_back() -> None:
    """Until it falls idle, a source of which nothing is known could bring any time."""
    both = workflow(a={}, b={"idle": "10s"})
    progress = seen(a=(50, 9 * SECOND))
    assert horizon_of(both, progress, 10 * SECOND, 0, False) is None
    assert horizon_of(both, progress, 10 * SECOND + 1, 0, False) == 50


def test_an_idle_source_does_not_hold_the_others_back() -> None:
    """A source that has brought nothing for longer than its idle time is left out."""
    both = workflow(a={"idle": "10s"}, b={"idle": "2s"})
    progress = seen(a=(50, 5 * SECOND), b=(30, 3 * SECOND))
    assert horizon_of(both, progress, 5 * SECOND, 0, False) == 30
    assert horizon_of(both, progress, 5 * SECOND + 1, 0, False) == 50


def test_a_source_that_brings_records_now_is_not_idle() -> None:
    """However long the last batch took, a source with records in this batch is not idle."""
    both = workflow(a={"idle": "10s"}, b={"idle": "2s"})
    progress = seen(a=(50, 5 * SECOND), b=(30, 3 * SECOND))
    assert horizon_of(both, progress, 9 * SECOND, 0, False, fresh=["b"]) == 30


def test_when_all_are_idle_time_moves_on() -> None:
    """With every source idle the horizon goes on with the idle time, from the furthest."""
    both = workflow(a={"idle": "10s"}, b={"idle": "2s"})
    progress = seen(a=(50, 0), b=(30, 0))
    assert horizon_of(both, progress, 10 * SECOND, 0, False) == 50
    assert horizon_of(both, progress, 10 * SECOND + 7, 0, False) == 30 + 8 * SECOND + 7


def test_idle_sources_without_a_record_say_nothing() -> None:
    """All idle, and none has ever brought a record: the horizon is unknown."""
    assert horizon_of(workflow(a={"idle": "1s"}), Progress(), 9 * SECOND, 0, False) is None


def test_a_start_resets_idleness() -> None:
    """Time in which the application did not run is not idle time."""
    both = workflow(a={"idle": "10s"}, b={"idle": "2s"})
    progress = seen(a=(50, 5 * SECOND), b=(30, 3 * SECOND))
    assert horizon_of(both, progress, 100 * SECOND, 99 * SECOND, False) == 30


def test_a_run_that_does_not_wait_has_no_idleness() -> None:
    """A run that takes what is there leaves out only the sources without any record."""
    three = workflow(a={"idle": "1s"}, b={"idle": "1s"}, c={})
    assert horizon_of(three, seen(a=(50, 0), b=(30, 0)), 99 * SECOND, None, False) == 30


def test_the_horizon_never_goes_back() -> None:
    """A source that was idle and comes back with older events does not take the horizon back."""
    both = workflow(a={}, b={})
    progress = seen(a=(50, 0), b=(30, 0))
    progress.horizon = 45
    assert horizon_of(both, progress, 1, 0, False) == 45


def test_the_final_horizon_is_the_highest_time_of_any_event() -> None:
    """At the end all events pass, emitted ones too, and timers up to the last event."""
    progress = seen(a=(50, 0))
    progress.highest = 70
    assert horizon_of(workflow(), progress, 1, 0, True) == 70


def test_in_order_of_arrival_time_is_the_highest_seen() -> None:
    """In order of arrival only timers look at event time, and lateness plays no part."""
    progress = seen(a=(50, 0))
    progress.highest = 50
    assert horizon_of(workflow("arrival", a={"lateness": "1h"}), progress, 1, 0, False) == 50
    beat = next_beat(
        workflow("arrival"),
        progress,
        epoch=1,
        batch=1,
        clock=1,
        started=0,
        final=False,
        lane="shuffled",
    )
    assert beat.late is None


def test_a_step_is_at_most_the_delay() -> None:
    """With delayed feedback the horizon steps by the delay, counted from what is to come next."""
    looped = workflow(delay=10)
    assert step_from(looped, 100, 90, 200) == 110
    assert step_from(looped, 100, 150, 200) == 159
    assert step_from(looped, 100, 150, 155) == 155
    assert step_from(looped, None, 150, 200) == 159
    assert step_from(looped, 100, None, 200) == 200


def test_without_delayed_feedback_there_are_no_steps() -> None:
    """No feedback, or feedback without a delay, or order of arrival: one step to the target."""
    assert step_from(workflow(), 100, 110, 200) == 200
    assert step_from(workflow("arrival", delay=10), 100, 110, 200) == 200


def test_the_shuffled_lane_steps_once_a_batch() -> None:
    """In the single lane a task loops over its steps. The shuffled lane takes one step, and
    lateness is the target's."""
    progress = seen(a=(200, 0))
    progress.horizon, progress.pending.least_waiting = 100, 101
    given: dict[str, Any] = {"epoch": 1, "batch": 1, "clock": 1, "started": 0, "final": False}
    looped = workflow(delay=10)
    shuffled = next_beat(looped, progress, lane="shuffled", **given)
    assert (shuffled.horizon, shuffled.late, shuffled.passed) == (110, 200, 100)
    whole = next_beat(looped, progress, lane="one-task", **given)
    assert (whole.horizon, whole.late, whole.earliest) == (200, 200, 101)


def test_the_earliest_thing_to_come() -> None:
    """Waiting events, timers and feedback: the least of them."""
    progress = set_fields(Progress(), least_waiting=5, least_timer=4, least_feedback=6)
    assert earliest_of(progress) == 4
    assert earliest_of(Progress()) is None


@pytest.mark.parametrize(
    ("progress", "due"),
    [
        (Progress(), False),
        (set_fields(Progress(), feedback=1), True),
        (set_fields(Progress(), least_wall=99), True),
        (set_fields(Progress(), least_wall=101), False),
        (set_fields(Progress(), highest=9, least_waiting=9), True),
        (set_fields(Progress(), highest=9, least_waiting=10), False),
        (set_fields(Progress(), highest=9, least_timer=9), True),
        (set_fields(Progress(), highest=9, least_timer=10), False),
        (set_fields(Progress(), least_timer=10), False),
    ],
)
def test_what_makes_a_batch_due(progress: Progress, due: bool) -> None:
    """Feedback, a wall timer that the clock has reached, an event or timer at the horizon."""
    assert is_due(workflow(), progress, 100, 0, True) is due


def test_progress_and_horizon_together() -> None:
    """The events of a batch move the horizon of the next batch, not its own."""
    one = workflow()
    progress = advanced(Progress(), [], 0, 5, {})
    assert horizon_of(one, progress, 6, 0, False) is None


@pytest.mark.parametrize(
    ("forced", "new_bytes", "waiting", "delay", "lane"),
    [
        ("auto", 1_000, 0, 0, "one-task"),
        ("auto", 1_001, 0, 0, "shuffled"),
        ("auto", 500, 5, 0, "one-task"),
        ("auto", 501, 5, 0, "shuffled"),
        ("auto", 9_999, 99, 10, "one-task"),
        ("shuffled", 1, 0, 10, "shuffled"),
        ("one-task", 9_999, 99, 0, "one-task"),
    ],
)
def test_the_lane_follows_the_size(
    forced: str, new_bytes: int, waiting: int, delay: int, lane: str
) -> None:
    """New bytes and due events decide, unless a lane is forced or delayed feedback needs steps."""
    assert lane_of(workflow(delay=delay), forced, new_bytes, waiting, 1_000) == lane


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_a_batch_continues_to_the_horizon_of_its_own_records(lane: Lane) -> None:
    """In both lanes a batch feeds what its own records let pass, through all layers; the limit of
    late events is that of the batches before it."""
    app = ms.App("two", order="event-time")
    app.source("a", lateness="10us", idle="400d")
    app.update("a", publishes="b", name="u")(lambda event, slate: [ms.emit()])
    app.update("b", name="v")(lambda event, slate: None)
    engine = InProcess(app.workflow(), lane=lane)
    engine.batch([ms.Event("a", ts, f"k{ts}", None) for ts in (8, 30, 25, 19, 21)])
    assert engine.progress.horizon == 20
    assert not is_due(engine.workflow, engine.progress, engine.clock, 0, final=False)
    processed = by_function(engine.progress.functions, "processed")
    assert processed == {"u": 2, "v": 2}
    assert engine.progress.waiting == 3
    assert engine.late == []
    engine.batch([ms.Event("a", ts, "k", None) for ts in (19, 22, 50)])
    assert [event.ts for event in engine.late] == [19]


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
@pytest.mark.parametrize("given", [{"limit": 5}, {"publishes": "a2"}])
def test_a_limit_or_a_cycle_keeps_a_batch_to_the_horizon_before_it(
    lane: Lane, given: dict[str, Any]
) -> None:
    """A limit may hold the horizon back, and feedback without a delay joins the next batch."""
    app = ms.App("kept", order="event-time")
    app.source("a")
    streams = ("a", "a2") if "publishes" in given else ("a",)
    app.update(*streams, name="u", **given)(lambda event, slate: None)
    beat = next_beat(
        app.workflow(),
        seen(a=(200, 0)),
        epoch=1,
        batch=1,
        clock=1,
        started=0,
        final=False,
        lane=lane,
    )
    assert beat.sources is None
