"""Online parameter optimisation (examples/optimise.py): each element, and the closed loop."""

from __future__ import annotations

import doctest
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from engine.in_process import InProcess
from engine.outcome import of_engine, of_reference
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from examples.optimise import COMPARISON, app
from examples.optimising import target as target_module
from examples.optimising.elements import ComparatorPE, MeasurementPE, OptimizerPE
from examples.optimising.plot import drawn
from examples.optimising.simulate import START, Cycle, anywhere, cycles, lost, main, off
from examples.optimising.target import EVERY, OPTIMUM, PARAMETERS, WEIGHTS, Target, objective

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "optimise.svg"
PAIR = "one:other"
Slot = st.lists(st.tuples(st.sampled_from(["one", "other"]), st.integers(0, 9), st.integers(0, 5)))


@pytest.fixture(scope="module")
def found() -> list[Cycle]:
    """The search from the usual start."""
    return list(cycles(app, 1))


def measuring(slots: str, **when: Any) -> ms.App:
    """Only the measurement."""
    made = ms.App("measuring")
    made.source("events", key="slice", ts="time", unit="us")
    made.output("measurements")
    measurement = MeasurementPE({"gain": 2.0}, "users", [PAIR], slots=slots)  # type: ignore[arg-type]
    made.add(measurement, keys={"events": "slice"}, publishes="measurements", **when)
    return made


def comparing(**how: Any) -> ms.App:
    """Only the comparator."""
    made = ms.App("comparing")
    made.source("measurements", key="comparison", ts="time", unit="us")
    made.output("verdicts")
    made.add(ComparatorPE(**how), keys={"measurements": "comparison"}, publishes="verdicts")
    return made


def optimising() -> ms.App:
    """Only the optimiser."""
    made = ms.App("optimising")
    made.source("verdicts", key="comparison", ts="time", unit="us")
    made.source("starts", key="comparison", ts="time", unit="us")
    keys = {"verdicts": "comparison", "starts": "comparison"}
    made.add(OptimizerPE(PARAMETERS), keys=keys, publish="parameters")
    return made


def measured(slot: int, cycle: int, one: float, other: float) -> list[dict[str, Any]]:
    both = {"comparison": PAIR, "cycle": cycle, "slot": slot, "time": slot}
    return [
        {**both, "slice": "one", "objective": one},
        {**both, "slice": "other", "objective": other},
    ]


def values(run: ms.testing.Run, stream: str) -> list[Any]:
    return [event.value for event in run.stream(stream)]


@given(st.lists(Slot, max_size=5))
def test_a_measurement_is_the_objective_of_its_slot(
    slots: list[list[tuple[str, int, int]]],
) -> None:
    """For each slot of time and each slice it is the weighted sum over the users, if there were
    any."""
    events = [
        {"time": (n * 60 + 1) * 1_000_000, "slice": name, "cycle": 1, "gain": gain, "users": users}
        for n, slot in enumerate(slots)
        for name, gain, users in slot
    ]
    end = {"time": 60_000_000 * 9, "slice": "one", "cycle": 1, "gain": 0, "users": 0}
    run = ms.testing.run(
        measuring("time", every="1m"), {"events": [*events, end, {**end, "slice": "other"}]}
    )
    expected = set()
    for n, slot in enumerate(slots):
        for name in ("one", "other"):
            users = sum(one[2] for one in slot if one[0] == name)
            if users:
                gain = sum(one[1] for one in slot if one[0] == name)
                expected.add((name, (n + 1) * 60_000_000, 2 * gain / users))
    assert {
        (m["slice"], m["slot"], m["objective"]) for m in values(run, "measurements")
    } == expected
    assert not run.dead_letters


def test_a_slot_may_be_of_events() -> None:
    """Every three events of a slice are a slot; the slots are numbered within the cycle."""
    events = [
        {"time": n, "slice": name, "cycle": 1, "gain": n, "users": 1}
        for n in range(1, 8)
        for name in ("one", "other")
    ]
    run = ms.testing.run(measuring("events", every_events=3), {"events": events})
    told = [(m["slice"], m["slot"], m["objective"]) for m in values(run, "measurements")]
    assert sorted(told) == [
        (name, n, 2 * mean) for name in ("one", "other") for n, mean in ((1, 2), (2, 5))
    ]


def test_what_is_left_of_an_older_cycle_is_not_measured() -> None:
    """A new cycle begins anew within its slot, and events of the one before it are passed over."""
    report = {"slice": "one", "users": 1}
    events = [
        {**report, "time": 1, "cycle": 1, "gain": 100},
        {**report, "time": 2, "cycle": 2, "gain": 5},
        {**report, "time": 3, "cycle": 1, "gain": 100},
        {**report, "time": 4, "cycle": 2, "gain": 7},
        {**report, "time": 60_000_000, "cycle": 2, "gain": 0},
    ]
    run = ms.testing.run(measuring("time", every="1m"), {"events": events})
    assert [(m["cycle"], m["objective"]) for m in values(run, "measurements")] == [(2, 12.0)]


def test_a_difference_is_found_as_soon_as_it_is_significant() -> None:
    """Not before the least number of pairs; then at the first at which the test says so, once."""
    records = [
        record
        for slot in range(1, 9)
        for record in measured(slot, 1, 5 + slot % 2 * 0.01, 4 + slot)
    ]
    run = ms.testing.run(comparing(least=4, most=8), {"measurements": records})
    (verdict,) = values(run, "verdicts")
    assert (verdict["cycle"], verdict["verdict"], verdict["slots"]) == (1, -1, 5)
    assert verdict["objectives"] == [pytest.approx(5.006), 7]
    assert verdict["p"] < 0.05


def test_what_both_slices_share_does_not_hide_a_difference() -> None:
    """A small difference is found under a swing a hundred times as great: they are paired."""
    records = [
        record
        for slot in range(1, 9)
        for record in measured(
            slot, 1, 100 + 50 * (slot % 3) + slot % 2 / 10, 99.5 + 50 * (slot % 3)
        )
    ]
    run = ms.testing.run(comparing(least=4, most=8), {"measurements": records})
    assert [verdict["verdict"] for verdict in values(run, "verdicts")] == [1]


def test_slices_are_equal_after_the_most_pairs() -> None:
    """No significant difference in so many pairs: equal. A slot that one slice lacks is no pair."""
    records = [
        record for slot in range(1, 9) for record in measured(slot, 1, 5.0, 5 + (-1) ** slot)
    ]
    del records[0]
    run = ms.testing.run(comparing(least=3, most=7), {"measurements": records})
    assert [(v["verdict"], v["slots"]) for v in values(run, "verdicts")] == [(0, 7)]
    assert (
        ms.testing.run(comparing(least=3, most=8), {"measurements": records}).stream("verdicts")
        == []
    )


def test_each_cycle_is_judged_by_its_own_measurements() -> None:
    """The first measurement of a new cycle starts the counts again. One of an older cycle is
    ignored."""
    first = [r for slot in range(1, 4) for r in measured(slot, 1, 9 + slot / 100, 1.0)]
    second = [r for slot in range(4, 8) for r in measured(slot, 2, 1 + slot / 100, 2.0)]
    stale = measured(8, 1, 9.0, 1.0)
    run = ms.testing.run(comparing(least=4, most=9), {"measurements": [*first, *second, *stale]})
    assert [(v["cycle"], v["verdict"]) for v in values(run, "verdicts")] == [(2, -1)]


def test_the_optimiser_begins_where_it_is_told_and_passes_stale_verdicts_over() -> None:
    """The present parameters first; a verdict of another cycle changes nothing; a second start is
    told what holds."""
    start = {"comparison": PAIR, "parameters": {"ads": 3.0}}
    run = ms.testing.run(optimising(), {"starts": [{**start, "time": 1}]})
    run.feed({"verdicts": [{"comparison": PAIR, "time": 10, "cycle": 7, "verdict": 1}]})
    run.feed({"verdicts": [{"comparison": PAIR, "time": 20, "cycle": 1, "verdict": 1}]})
    run.feed({"starts": [{**start, "time": 30}]})
    told = values(run, "parameters")
    assert [one["cycle"] for one in told] == [1, 2, 2]
    assert told[0]["slices"]["other"] == {"reserve": 2.0, "ads": 3.0}
    assert told[0]["slices"]["one"] == {"reserve": 3.8, "ads": 3.0}
    assert told[1]["best"] == {"reserve": 3.8, "ads": 3.0}
    assert told[1]["slices"] == told[2]["slices"]


def test_the_optimum_is_where_the_target_says() -> None:
    """No point of a fine grid is better than the known optimum, and its neighbours are worse."""
    grid = [n / 10 for n in range(101)]
    best = max((objective({"reserve": r, "ads": a}), r, a) for r in grid for a in grid)
    assert best[1:] == (OPTIMUM["reserve"], OPTIMUM["ads"])
    assert objective({"reserve": 5.51, "ads": 4.41}) < objective(OPTIMUM)


def test_the_examples_of_the_target_hold() -> None:
    """Its doctests."""
    ran = doctest.testmod(target_module)
    assert (ran.failed, ran.attempted > 0) == (0, True)


def test_the_target_tells_its_objective_on_average() -> None:
    """Over whole days the noisy reports come to the expected objective, less the day's swing."""
    target = Target(3, START)
    target.apply(
        {"cycle": 1, "slices": {"slice1": OPTIMUM, "slice2": {"reserve": 2.0, "ads": 8.5}}}
    )
    told = list(target.run(START + 20 * 144 * EVERY))
    means = [
        fmean(
            (r["revenue"] + 2.5 * r["satisfied"]) / r["searches"]
            for r in told
            if r["slice"] == name
        )
        for name in ("slice1", "slice2")
    ]
    expected = objective(OPTIMUM) / objective({"reserve": 2.0, "ads": 8.5})
    assert means[0] / means[1] == pytest.approx(expected, rel=0.02)
    assert means[0] == pytest.approx(0.75 * objective(OPTIMUM), rel=0.1)


@pytest.mark.parametrize("seed", [1, 5, 9, 16])
def test_the_loop_finds_the_optimum_from_anywhere(seed: int) -> None:
    """From a start drawn at random: finished, within 8% of the range and 1% of the objective."""
    *_, end = cycles(app, seed, anywhere(seed))
    assert end.finished
    assert off(end.best) <= 0.08
    assert lost(end.best) <= 0.01
    assert end.number <= 80


def test_one_parameter_alone_over_slots_of_events() -> None:
    """As in the paper's trial: only the reserve is tuned, and every three reports are a slot."""
    made = ms.App("alone")
    made.source("events", key="slice", ts="time", unit="us")
    made.source("starts", key="comparison", ts="time", unit="us")
    made.add(
        MeasurementPE(WEIGHTS, "searches", [COMPARISON], slots="events"),
        keys={"events": "slice"},
        publishes="measurements",
        every_events=3,
    )
    made.add(ComparatorPE(), keys={"measurements": "comparison"}, publishes="verdicts")
    made.add(
        OptimizerPE({"reserve": PARAMETERS["reserve"]}),
        keys={"verdicts": "comparison", "starts": "comparison"},
        publish="parameters",
    )
    *_, end = cycles(made, 1)
    assert end.finished
    assert end.best == {"reserve": pytest.approx(OPTIMUM["reserve"], abs=0.5)}


def test_the_best_only_gets_better_but_for_the_noise(found: list[Cycle]) -> None:
    """From the usual start: far off at first, never much worse again, good at the end."""
    path = [lost(cycle.best) for cycle in found]
    assert path[0] > 0.3
    assert all(after <= before + 0.01 for before, after in pairwise(path))
    assert path[-1] <= 0.005
    assert found[-1].slices["slice1"] == found[-1].slices["slice2"] == found[-1].best


def test_the_picture_is_of_the_search(found: list[Cycle]) -> None:
    """docs/pictures/optimise.svg is what the command draws."""
    assert PICTURE.read_text(encoding="utf-8") == drawn(found), "run: make docs"


def test_the_command_says_what_it_found(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, found: list[Cycle]
) -> None:
    """`python -m examples.optimise --plot FILE`: a line a cycle, the finding, the picture."""
    main(app, ["--plot", str(tmp_path / "o.svg")])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(found) + 2
    assert "the optimum is reserve 5.50, ads 4.40" in lines[-2]
    assert (tmp_path / "o.svg").read_text() == drawn(found)


def test_the_loop_on_the_engine_is_the_reference_over_the_same_events() -> None:
    """The loop closed over the engine: three hours a batch, so that parameters come late. It comes
    near the optimum, and the reference over all that was sent has the same slates and streams."""
    engine, target = InProcess(app.workflow(), clock=START), Target(4, START)
    hello = target.hello()
    sent = [ms.Event("starts", hello["time"], COMPARISON, hello)]
    engine.batch(sent)
    while target.cycle < 25:
        assert target.time < START + 60 * 144 * EVERY
        records = list(target.run(target.time + 18 * EVERY))
        events = [ms.Event("events", r["time"], r["slice"], r) for r in records]
        engine.batch(events)
        sent += events
        for told in engine.streams.get("parameters", [])[target.cycle :]:
            target.apply(told.value)
    engine.settle(final=True)
    assert not engine.late
    assert not engine.letters
    assert of_engine(engine) == of_reference(engine.workflow, sent, engine.shards)
    assert lost(engine.streams["parameters"][-1].value["best"]) < 0.02
