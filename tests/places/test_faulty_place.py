"""Creating exactly once, by `created` and `persistent`, over a place that misbehaves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from places.faulty_place import FaultRates, FaultyPlace

from millstream.errors import PlaceError
from millstream.places.memory_place import MemoryPlace
from millstream.places.place import created, persistent

rates = st.builds(
    FaultRates,
    fails=st.floats(0, 0.5),
    loses_answer=st.floats(0, 0.5),
    comes_late=st.floats(0, 0.5),
)


@given(st.integers(), rates, st.integers(1, 3))
def test_one_writer_has_a_name_whatever_the_place_does(
    seed: int, drawn: FaultRates, writers: int
) -> None:
    """The writers that got True wrote the present content; those that got False did not."""
    memory = MemoryPlace()
    place = FaultyPlace(memory, seed, drawn)
    for number in range(10):
        name = f"commits/{number}"
        told: dict[bytes, bool | None] = {}
        for who in range(writers):
            data = f"{who} of {number}".encode()
            try:
                told[data] = persistent(
                    lambda name=name, data=data: created(place, name, data),  # type: ignore[misc]
                    seconds=100.0,
                    clock=lambda: 0.0,
                    pause=lambda _: None,
                )
            except PlaceError:
                told[data] = None
        there = memory.get(name)
        for data, won in told.items():
            assert won is not None
            assert won == (data == there)
        place.settle()
        assert memory.get(name) == there


def test_faults_come_about() -> None:
    """Each of them, at its rate, so that the test above is one."""
    place = FaultyPlace(MemoryPlace(), 1, FaultRates(0.1, 0.1, 0.1, 0.1))
    for number in range(1_000):
        try:
            place.create(f"x/{number}", b"1")
        except PlaceError:
            pass
    assert all(60 < count < 140 for count in place.faults.values())
    assert len(place.faults) == 4
