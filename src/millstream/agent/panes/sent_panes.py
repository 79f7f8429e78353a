"""Puts the panes of a job into its outbox, with the restart point after each (iMR, 4.3).

This is also where a node adds up the counts of its records, once for each message that it sends.
"""

from __future__ import annotations

from msgspec.structs import replace

from millstream.agent.delivery.bodies import fitted
from millstream.agent.delivery.outbox import Outbox, OutboxEntry, Say
from millstream.agent.limits import Limits
from millstream.agent.log.log_files import Mark
from millstream.agent.panes.restart import Restart
from millstream.agent.panes.rounds import Rounds
from millstream.windows.panes.message import Message
from millstream.windows.placed import PlacedJob


class SentPanes:
    """The panes of a job that were sent, and their counts. Used by one thread."""

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
        """The counts of the records of all panes that were sent."""
        self.shed_why = dict(restart.shed_why)
        self._entries: list[OutboxEntry] = []
        self._position: list[Mark] = []
        """The position in the log after the last of them."""

    def send(self, message: Message, here: Restart) -> None:
        """Queue a message for the next `put`. `here` is the point up to which the log was read."""
        message, body = fitted(message, self._say)
        manifest = message.nodes[self._node]
        self.counts.add(manifest)
        why = manifest.why
        if why is not None and manifest.shed:
            self.shed_why[why] = self.shed_why.get(why, 0) + manifest.shed
        after = replace(self._rounds.send(message, here, self.counts), shed_why=dict(self.shed_why))
        self._position = after.position
        self._entries.append(
            OutboxEntry(
                self._placed.name,
                self._node,
                message.pane,
                message.until,
                body,
                after.described(),
            )
        )

    def put(self) -> list[Mark] | None:
        """Put the queued messages into the outbox. Returns the position in the log after them; None
        if there were none or the agent was stopped."""
        if not self._entries or not self._limits.put(self._outbox, self._entries):
            return None
        self._entries = []
        return self._position
