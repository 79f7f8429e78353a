"""One place to post to: what became of the tries, and when the next one may be.

A server that cannot take more says so, and how long to wait; that is the root's flow control (iMR,
4.2), and it is heeded. One that does not answer is tried again after pauses that double up to five
seconds, each a little different, so that agents which lost it together do not come back together.
"""

from __future__ import annotations

from collections.abc import Callable
from random import uniform

from millstream.agent.outbox import Say
from millstream.agent.wire import SILENT, Answer, Way
from millstream.errors import ClientError

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


class Trying:
    """A way, and how it went so far. Used by one thread."""

    def __init__(self, way: Way, what: str, clock: Callable[[], float], say: Say) -> None:
        """`what` is posted there, in words."""
        self._way, self._what, self._clock, self._say = way, what, clock, say
        self._tries = 0
        self._since: float | None = None
        """When it began not to work; None if it does."""
        self._silent = False
        self._gone_until: float | None = None
        """When to look whether it is there again; None if it is not gone."""
        self._said = False
        self.not_before = -1.0
        """When the next try may be."""
        self.paused: str | None = None
        """Why there was none that worked."""

    @property
    def name(self) -> str:
        return self._way.name

    def post(self, path: str, body: bytes, key: str) -> bool:
        """Whether it was taken; if not, it may be later. ClientError if it can never be."""
        try:
            answer = self._way.post(path, body, key)
        except SILENT as error:
            self._silent = True
            self._failed(f"{self.name} does not answer: {str(error) or type(error).__name__}", None)
            return False
        self._silent = False
        verdict = answer.verdict()
        if verdict == "never":
            raise refusal(self._way, self._what, answer)
        if verdict == "later":
            self._failed(f"{self.name} takes nothing now: {answer.sentence()}", answer.retry_after)
            return False
        self._worked()
        return True

    def gone(self, patience: float) -> bool:
        """Whether another way has to be taken: it is silent, or has taken nothing for `patience`
        seconds of trying. It is looked at every few seconds, and is not gone when it answers."""
        now = self._clock()
        if self._gone_until is None:
            if self._since is None or not (self._silent or now - self._since >= patience):
                return False
            self._gone_until = now + PROBE_EVERY
        if now < self._gone_until:
            return True
        if not self._way.alive():
            self._gone_until = self._clock() + PROBE_EVERY
            return True
        self._begin_anew()
        return False

    def _failed(self, sentence: str, asked: float | None) -> None:
        now = self._clock()
        self._tries += 1
        self.not_before = now + pause(self._tries, asked, uniform(0, 1))
        self._since = now if self._since is None else self._since
        self.paused = sentence
        if not self._said:
            self._said = True
            self._say(sentence)

    def _worked(self) -> None:
        self._begin_anew()
        if self._said:
            self._said = False
            self._say(f"{self.name} takes {self._what} again")

    def _begin_anew(self) -> None:
        self._tries, self._since, self._silent, self._gone_until = 0, None, False, None
        self.not_before, self.paused = -1.0, None


def refusal(way: Way, what: str, answer: Answer) -> ClientError:
    """What to say when something can never be taken."""
    hints = {
        401: "set MILLSTREAM_TOKEN to its token",
        404: "its application must have this job, with logs=; or is the address another one's?",
        413: "give the job shorter panes",
    }
    hint = hints.get(answer.status, "mend that")
    return ClientError(
        f"{way.name} refuses {what}: {answer.sentence()}; {hint}, and start the agent again: "
        "what was not taken is in its outbox",
        answer.status,
    )
