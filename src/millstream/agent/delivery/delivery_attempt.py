"""Posts to one server, and reports failures. `LinkHealth` decides when to try again."""

from __future__ import annotations

from collections.abc import Callable
from random import uniform

from millstream.agent.delivery.link_health import LinkHealth
from millstream.agent.delivery.outbox import Say
from millstream.agent.delivery.wire import SILENT, Answer, Verdict, Way
from millstream.errors import ClientError


class DeliveryAttempt:
    """Posts on one way, and keeps the results of its tries. Used by one thread."""

    def __init__(self, way: Way, subject: str, clock: Callable[[], float], say: Say) -> None:
        """`subject` describes in messages what is posted."""
        self.way, self._what, self._clock, self._say = way, subject, clock, say
        self.health = LinkHealth()
        self._said = False
        self.paused: str | None = None
        """The reason why the last try failed; None if it worked."""

    @property
    def name(self) -> str:
        return self.way.name

    @property
    def not_before(self) -> float:
        """The earliest time of the next try."""
        return self.health.not_before

    def post(self, path: str, body: bytes, key: str) -> bool:
        """Post once. False if it must be retried later. Raises ClientError if it is refused for
        good."""
        try:
            answer = self.way.post(path, body, key)
        except SILENT as error:
            why = f"{self.name} does not answer: {str(error) or type(error).__name__}"
            self._failed(why, None, silent=True)
            return False
        verdict: Verdict = answer.verdict()
        if verdict == "never":
            self.health.silent = False
            raise refusal(self.way, self._what, answer)
        if verdict == "later":
            why = f"{self.name} takes nothing now: {answer.sentence()}"
            self._failed(why, answer.retry_after, silent=False)
            return False
        self._begin_anew()
        if self._said:
            self._said = False
            self._say(f"{self.name} takes {self._what} again")
        return True

    def gone(self, patience: float) -> bool:
        """True if another way has to be taken. A server that is gone is probed every few seconds,
        and used again when it answers."""
        state = self.health.state(self._clock(), patience)
        if state != "look":
            return state == "gone"
        alive = self.way.alive()
        self.health.looked(self._clock(), alive=alive)
        if alive:
            self.paused = None
        return not alive

    def _failed(self, sentence: str, asked: float | None, *, silent: bool) -> None:
        self.health.failed(self._clock(), silent=silent, asked=asked, drawn=uniform(0, 1))
        self.paused = sentence
        if not self._said:
            self._said = True
            self._say(sentence)

    def _begin_anew(self) -> None:
        self.health.worked()
        self.paused = None


def refusal(way: Way, subject: str, answer: Answer) -> ClientError:
    """Returns the error for something that is refused for good."""
    hints = {
        401: "set MILLSTREAM_TOKEN to its token",
        404: "its application must have this job, with logs=; or is it another application's root?",
        413: "give the job shorter panes",
    }
    hint = hints.get(answer.status, "fix that")
    return ClientError(
        f"{way.name} refuses {subject}: {answer.sentence()}; {hint}, and start the agent again: "
        "what was not taken is in its outbox",
        answer.status,
    )
