"""Pauses reading while the outbox is full, the disk is full, or memory has run out.

Meanwhile the log is the buffer: nothing is lost by waiting. A pane that exceeds the memory limit on
its own is given up, since waiting would not help.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable, Sequence

from millstream.agent.delivery.outbox import Outbox, OutboxEntry
from millstream.agent.surroundings import Surroundings
from millstream.errors import StoreError
from millstream.model.size import shown_size

AGAIN = 1.0
"""Seconds after which a failed write is retried."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Returns the resident bytes of the process; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def give_back() -> None:
    """Give free memory back to the system; Python alone would keep it."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Limits:
    """Waits until the limits are met; `paused` says why it waits.

    While it waits it calls the surroundings' `tick`. Their `stop` ends the wait.
    """

    def __init__(
        self, memory: int, around: Surroundings, used: Callable[[], int] = resident
    ) -> None:
        self._memory, self._used = memory, used
        self._say, self._stop, self._tick = around.say, around.stop, around.tick
        self.outboxes: list[Outbox] = []
        """The outboxes of all jobs, which share the memory and the disk."""
        self.paused: str | None = None

    def put(self, outbox: Outbox, entries: Sequence[OutboxEntry]) -> bool:
        """Put panes into an outbox when there is room on the disk. False if it was stopped."""
        return self.when_there_is_room(lambda: outbox.put(entries))

    def when_there_is_room(self, write: Callable[[], None]) -> bool:
        """Retry `write` until the disk has room for it. False if it was stopped before that."""
        while True:
            try:
                write()
            except (OSError, StoreError) as error:
                self._wait(f"disk: {error}", AGAIN)
                if self._stop.is_set():
                    return False
            else:
                self._go_on()
                return True

    def room_in_outbox(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait until no outbox is full; call `meanwhile` from time to time."""
        while not self._stop.is_set():
            full = next((outbox for outbox in self.outboxes if outbox.full), None)
            if full is None:
                break
            meanwhile()
            size = shown_size(full.bytes)
            self._wait(f"buffer: {size} of panes wait to be sent (--buffer)", 0.1, full)
        self._go_on()

    def fits(self) -> bool:
        """True if the memory in use is within its limit. Waits for the outboxes to be sent if it is
        not.

        If this returns False, the caller must give up a pane.
        """
        if self._used() <= self._memory:
            return True
        give_back()
        while self._used() > self._memory and not self._stop.is_set():
            waiting = next((outbox for outbox in self.outboxes if outbox.bytes), None)
            if waiting is None:
                break
            self._wait(f"memory: over {shown_size(self._memory)} (--memory)", 0.1, waiting)
        self._go_on()
        return self._used() <= self._memory or self._stop.is_set()

    def made_room(self) -> None:
        """Raise the limit if the memory in use exceeds it without any pane. Otherwise no pane could
        ever be made.

        Must be called when there is no pane, or all were given up.
        """
        give_back()
        used = self._used()
        if used > self._memory:
            self._memory = used + used // 8
            self._say(
                f"memory: {shown_size(used)} are in use without any pane; the limit is now "
                f"{shown_size(self._memory)}; set a higher one with --memory"
            )

    def _wait(self, why: str, seconds: float, outbox: Outbox | None = None) -> None:
        kind = why.partition(":")[0]
        if self.paused is None or not self.paused.startswith(kind):
            self._say(f"reading is paused, {why}")
        self.paused = why
        self._tick()
        if outbox is None:
            self._stop.wait(seconds)
        else:
            outbox.wait_empty(seconds)

    def _go_on(self) -> None:
        if self.paused is not None:
            self._say("reading goes on")
            self.paused = None
