"""Tracks how a server has been answering: when to try it next, and whether to bypass it.

A server that cannot take more says so, and how long to wait. That is the root's flow control (iMR,
4.2), and the agent obeys. A server that does not answer is retried after pauses that double up to
five seconds. Each pause has a random part, so that agents that lost a server at the same time do
not retry at the same time.

Pure: the time and the random numbers are arguments.
"""

from __future__ import annotations

from typing import Literal

from millstream.retry_pause import pause

PROBE_EVERY = 5.0
"""Seconds between two probes of a parent that is gone."""


class LinkHealth:
    """The results of the last tries to reach one server."""

    def __init__(self) -> None:
        self._tries = 0
        self._since: float | None = None
        """The time of the first failed try since the last success; None if the last one worked."""
        self.silent = False
        """True if the last try got no answer."""
        self._look_at: float | None = None
        """When to probe whether it is back; None if it is not gone."""
        self.not_before = -1.0
        """The earliest time of the next try."""

    def failed(self, now: float, *, silent: bool, asked: float | None, drawn: float) -> None:
        """A try failed: it got no answer (`silent`), or was told to wait for `asked` seconds.

        `drawn`, a random number from 0 to 1, lengthens the pause by up to a half.
        """
        self._tries += 1
        self.silent = silent
        self.not_before = now + pause(self._tries, asked) * (1 + drawn / 2)
        self._since = now if self._since is None else self._since

    def worked(self) -> None:
        self.__init__()  # type: ignore[misc]

    def state(self, now: float, patience: float) -> Literal["there", "gone", "look"]:
        """Returns whether the server can be used.

        It is `gone` if it is silent, or has taken nothing for `patience` seconds of trying. `look`
        means that a server that was gone must be probed now, and the result reported by `looked`.
        """
        if self._look_at is None:
            if self._since is None or not (self.silent or now - self._since >= patience):
                return "there"
            self._look_at = now + PROBE_EVERY
        return "gone" if now < self._look_at else "look"

    def looked(self, now: float, *, alive: bool) -> None:
        """Take the result of a probe."""
        if alive:
            self.worked()
        else:
            self._look_at = now + PROBE_EVERY
