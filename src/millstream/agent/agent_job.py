"""One job at an agent: its folder, its outbox, its link to the root, and its panes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from millstream.agent.delivery.outbox import Outbox
from millstream.agent.job_status import JobStatus, SendingStatus
from millstream.agent.limits import Limits
from millstream.agent.options import AgentOptions
from millstream.agent.panes.job_panes import JobPanes
from millstream.agent.panes.pane_pace import Windows
from millstream.agent.state import State
from millstream.agent.surroundings import Surroundings
from millstream.windows.placed import PlacedJob


class PaneLink(Protocol):
    """Sends the panes of a job and follows the news of its windows, on threads of its own."""

    @property
    def decisions(self) -> Windows: ...

    def start(self) -> None: ...

    def check(self) -> None:
        """Raise the error that has ended it, if one has."""

    def stop(self, seconds: float) -> None: ...

    def status(self) -> SendingStatus:
        """Returns the part of the status about sending."""


Link = Callable[[PlacedJob, Outbox], PaneLink]


class AgentJob:
    """A job that an agent runs. Used by one thread."""

    def __init__(
        self,
        placed: PlacedJob,
        options: AgentOptions,
        folder: Path,
        link: Link,
        limits: Limits,
        around: Surroundings,
    ) -> None:
        """Raises StoreLocked if another agent uses the folder, StoreError if the folder belongs to
        another job or node."""
        self.placed, self.folder = placed, folder
        self._limits = limits
        self._state = State(folder, placed, options.node)
        try:
            self.outbox = Outbox(folder / "outbox", options.buffer, around.say)
            self._link = link(placed, self.outbox)
            self.panes = JobPanes(
                placed,
                options.node,
                options.whole_tree,
                self._state,
                self.outbox,
                self._link.decisions,
                limits,
                around,
                self._link.status,
            )
        except BaseException:
            self._state.close()
            raise
        limits.outboxes.append(self.outbox)

    def start(self) -> None:
        self._link.start()

    def check(self) -> None:
        """Raise the error, if there is one, after which its panes cannot be sent any more."""
        self._link.check()

    def close(self) -> JobStatus:
        """End the job and return its last status."""
        self.panes.close()
        self._link.stop(1.0)
        self._limits.outboxes.remove(self.outbox)
        status = replace(self.panes.status(), unsent=self.outbox.panes, ended=True)
        self._state.status(status)
        self._state.close()
        return status
