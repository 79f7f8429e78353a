"""The cycle of batches, cut off at every point, in every order of what runs beside it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, product

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_world import Disk, World, lived, taken

from millstream.driver.cycle import Happening

RECORDS = 9
FOR_EVER = 1 << 30
FIRST: Callable[[int], int] = lambda options: 0  # noqa: E731  # what runs beside comes first
LAST: Callable[[int], int] = lambda options: options - 1  # noqa: E731  # and here last


def assert_each_once(disk: Disk) -> None:
    """Every record is counted once and published once."""
    assert disk.counted == set(range(RECORDS))
    assert sorted(record for rows in disk.published.values() for record in rows) == list(
        range(RECORDS)
    )


@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("rests", [False, True])
@pytest.mark.parametrize("choose", [FIRST, LAST], ids=["beside first", "beside last"])
def test_a_cut_at_any_point_loses_and_doubles_nothing(
    choose: Callable[[int], int], rests: bool, layered: bool
) -> None:
    """After whatever step the process ends, the next one processes each record once."""
    for cut in count():
        disk = Disk(RECORDS)
        first = lived(disk, cut, choose, layered=layered, rests=rests)
        second = lived(disk, FOR_EVER, choose, layered=layered, rests=rests)
        assert second.ended
        assert second.error is None
        assert_each_once(disk)
        if first.ended:
            assert cut > 30, "that was too few steps to mean anything"
            return


@settings(max_examples=examples(300))
@given(
    cuts=st.lists(st.integers(0, 60), max_size=6),
    choices=st.randoms(use_true_random=False),
    layered=st.booleans(),
    rests=st.booleans(),
)
def test_many_cuts_in_any_order_lose_and_double_nothing(
    cuts: list[int], choices: object, layered: bool, rests: bool
) -> None:
    """Process after process is cut off, each at another point and with another order of events."""

    def choose(options: int) -> int:
        return choices.randrange(options)  # type: ignore[attr-defined, no-any-return]

    disk = Disk(RECORDS)
    for cut in cuts:
        lived(disk, cut, choose, layered=layered, rests=rests)
    lived(disk, FOR_EVER, choose, layered=layered, rests=rests)
    assert_each_once(disk)


@pytest.mark.parametrize(
    ("step", "choose"), [*product(("run", "stage", "publish"), (FIRST, LAST)), ("tell", LAST)]
)
def test_a_step_that_fails_ends_the_run_and_loses_nothing(
    step: str, choose: Callable[[int], int]
) -> None:
    """The run ends with the error, nothing that was not published is overtaken, and the next start
    goes on."""
    disk = Disk(RECORDS)
    failed = lived(disk, FOR_EVER, choose, fails=frozenset({step}))
    assert failed.ended
    assert isinstance(failed.error, RuntimeError)
    assert taken(disk.progress) < RECORDS
    lived(disk, FOR_EVER, choose)
    assert_each_once(disk)


def test_a_flush_that_fails_is_not_tried_again_at_the_end() -> None:
    """It was retried for the allowed time. The next start flushes."""
    disk = Disk(RECORDS)
    failed = lived(disk, FOR_EVER, FIRST, layered=True, fails=frozenset({"flush"}))
    assert isinstance(failed.error, RuntimeError)
    assert failed.flushes == 1
    lived(disk, FOR_EVER, FIRST, layered=True)
    assert_each_once(disk)


@pytest.mark.parametrize("choose", [FIRST, LAST], ids=["beside first", "beside last"])
@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("rests", [False, True])
def test_a_stop_at_any_point_ends_it_without_an_error(
    choose: Callable[[int], int], rests: bool, layered: bool
) -> None:
    """Asked to stop after any step, it ends by itself, with all that is committed published."""
    for stop in range(40):
        disk = Disk(RECORDS)
        stopped = lived(disk, FOR_EVER, choose, layered=layered, stop_after=stop, rests=rests)
        assert stopped.ended
        assert stopped.error is None
        published = {record for rows in disk.published.values() for record in rows}
        assert published == set(range(taken(disk.progress)))
        lived(disk, FOR_EVER, choose, layered=layered)
        assert_each_once(disk)


def test_a_batch_overlaps_with_the_publishing_of_the_last() -> None:
    """The tasks of a batch run while the sinks get the one before."""
    beside: list[set[str]] = []

    class Watched(World):
        def begin(self, name: str, complete: Callable[[], Happening | None]) -> None:
            super().begin(name, complete)
            beside.append({known for known, _ in self.pending})

    Watched(Disk(RECORDS), LAST, FOR_EVER).live()
    assert {"run", "publish"} in beside
