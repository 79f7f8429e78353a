"""Panes of a job on their way into its outbox, with the restart point after each (iMR, 4.3).

Here a node counts what became of its records, once for each message that it sends.
"""

from __future__ import annotations

from typing import Any

from millstream.agent.bodies import fitted
from millstream.agent.limits import Limits
from millstream.agent.outbox import Entry, Outbox, Say
from millstream.agent.restart import Restart
from millstream.agent.rounds import Rounds
from millstream.windows.message import Message
from millstream.windows.placed import PlacedJob


class SentPanes:
    """What a job's panes have told. One thread."""

    def __init__(
        self,
        placed: PlacedJob,
        node: str,
        outbox: Outbox,
        rounds: Rounds,
        limits: Limits,
        restart: Restart,
        say: Say,
    ) -> None:
        self._placed, self._node, self._say = placed, node, say
        self._outbox, self._rounds, self._limits = outbox, rounds, limits
        self.counts = restart.counts.plus(rounds.ahead(restart.pane))
        """Of the records of all panes that were sent."""
        self.shed_why = dict(restart.shed_why)
        self._entries: list[Entry] = []

    def send(self, message: Message, here: Restart) -> None:
        """Give a message to the outbox, with the next `put`; the log has come `here`."""
        message, body = fitted(message, self._say)
        told = message["nodes"][self._node]
        self.counts.add(told)
        if told["why"] is not None and told["shed"]:
            self.shed_why[told["why"]] = self.shed_why.get(told["why"], 0) + told["shed"]
        after = self._rounds.send(message, here, self.counts).described()
        after["shed_why"] = dict(self.shed_why)
        self._entries.append(
            Entry(self._placed.name, self._node, message["pane"], message["until"], body, after)
        )

    def put(self) -> list[dict[str, Any]] | None:
        """Put what was sent into the outbox; the position in the log after it, None if there was
        nothing or the agent was stopped."""
        if not self._entries or not self._limits.put(self._outbox, self._entries):
            return None
        position: list[dict[str, Any]] = self._entries[-1].after["position"]
        self._entries = []
        return position
