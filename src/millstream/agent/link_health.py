"""How one place to post to has been answering: when to try it next, and whether to pass it by.

A server that cannot take more says so, and how long to wait; that is the root's flow control (iMR,
4.2), and it is heeded. One that does not answer is tried again after pauses that double up to five
seconds, each a little different, so that agents which lost it together do not come back together.

Pure: the time and what is drawn are arguments.
"""

from __future__ import annotations

from typing import Literal

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
LONGEST_HEEDED = 60.0
"""The longest that a server may tell us to wait."""
PROBE_EVERY = 5.0
"""Seconds between two looks at whether a parent that was gone is there again."""


def pause(tries: int, asked: float | None, more: float) -> float:
    """Seconds to wait after so many tries in a row; `more`, from 0 to 1, adds up to a half.

    >>> [pause(tries, None, 0.0) for tries in (1, 2, 3, 10)]
    [0.1, 0.2, 0.4, 5.0]
    >>> pause(1, 2.0, 1.0), pause(1, 9999.0, 0.0)
    (3.0, 60.0)
    """
    own = min(FIRST_PAUSE * 2.0 ** min(tries - 1, 16), LONGEST_PAUSE)
    wait = own if asked is None else max(own, min(asked, LONGEST_HEEDED))
    return wait * (1 + more / 2)


class LinkHealth:
    """What became of the tries."""

    def __init__(self) -> None:
        self._tries = 0
        self._since: float | None = None
        """When it began not to work; None if it does."""
        self.silent = False
        """Whether the last try got no answer."""
        self._look_at: float | None = None
        """When to look whether it is there again; None if it is not gone."""
        self.not_before = -1.0
        """When the next try may be."""

    def failed(self, now: float, *, silent: bool, asked: float | None, drawn: float) -> None:
        """A try was not answered, or it is to wait for `asked` seconds; `drawn` is from 0 to 1."""
        self._tries += 1
        self.silent = silent
        self.not_before = now + pause(self._tries, asked, drawn)
        self._since = now if self._since is None else self._since

    def worked(self) -> None:
        self.__init__()  # type: ignore[misc]

    def state(self, now: float, patience: float) -> Literal["there", "gone", "look"]:
        """Whether another way has to be taken: it is silent, or has taken nothing for `patience`
        seconds of trying. `look`: it was gone; see whether it answers, and say so by `looked`."""
        if self._look_at is None:
            if self._since is None or not (self.silent or now - self._since >= patience):
                return "there"
            self._look_at = now + PROBE_EVERY
        return "gone" if now < self._look_at else "look"

    def looked(self, now: float, *, alive: bool) -> None:
        """It was looked at."""
        if alive:
            self.worked()
        else:
            self._look_at = now + PROBE_EVERY
