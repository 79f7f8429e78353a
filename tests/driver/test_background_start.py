"""What is slow to start starts beside what does not need it, and is always closed once."""

from __future__ import annotations

import threading

import pytest

from millstream.driver.startup.background_start import BackgroundStart

PATIENCE = 10.0


class Held:
    """Something that starts when it may, and counts how often it is closed."""

    def __init__(self) -> None:
        self.may_start = threading.Event()
        self.closed = threading.Semaphore(0)

    def start(self) -> Held:
        assert self.may_start.wait(PATIENCE)
        return self

    def close(self) -> None:
        self.closed.release()

    def was_closed(self, patience: float = PATIENCE) -> bool:
        return self.closed.acquire(timeout=patience)


@pytest.fixture
def held() -> Held:
    return Held()


def test_the_block_runs_beside_the_start_and_closes_it(held: Held) -> None:
    with BackgroundStart(held.start, Held.close) as starting:
        assert not starting.is_done()
        held.may_start.set()
        assert starting.result() is held
        assert starting.is_done()
    assert held.was_closed()
    starting.close()
    assert not held.was_closed(0)


def test_what_was_taken_is_the_takers_to_close(held: Held) -> None:
    held.may_start.set()
    with BackgroundStart(held.start, Held.close) as starting:
        assert starting.take() is held
    assert not held.was_closed(0)


def test_a_block_that_ends_first_does_not_wait_and_leaves_nothing_open(held: Held) -> None:
    """An error comes at once; what starts later is closed as soon as it has."""
    with BackgroundStart(held.start, Held.close):
        pass
    held.may_start.set()
    assert held.was_closed()


def test_the_error_of_a_start_is_raised_where_it_is_needed() -> None:
    def fails() -> Held:
        raise ValueError("no")

    with BackgroundStart(fails, Held.close) as starting:
        with pytest.raises(ValueError, match="no"):
            starting.result()
        with pytest.raises(ValueError, match="no"):
            starting.is_done()
