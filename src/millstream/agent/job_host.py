"""Fetches, starts and stops the jobs that the root wants an agent to run.

The root names the jobs with their versions. A definition is fetched when its version is new, and
passed to the host. The host fetches the package that the definition may name, and checks whether it
may run here. A job that cannot run is reported once, and retried after a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from urllib.parse import quote

import msgspec

from millstream.agent.delivery.outbox import Say
from millstream.agent.delivery.wire import SILENT, ServerWire, job_path
from millstream.errors import MillstreamError
from millstream.trees.messages import JobTicket

AGAIN = 300.0
"""Seconds after which a job that could not be started is retried."""


class JobHost(Protocol):
    """Runs jobs in this agent. A job that is started again has another version."""

    def start(self, ticket: JobTicket, definition: bytes, fetch: Callable[[str], bytes]) -> None:
        """Run a job. `definition` is the answer to GET /jobs/NAME/definition; `fetch` gets a
        package by its hash. Raises MillstreamError if the job cannot or must not run here."""

    def stop(self, name: str) -> None:
        """End a job. The panes that it has made are still sent."""


class _PublishedVersion(msgspec.Struct):
    """The only field of a definition that is read here."""

    version: str


class JobHosting:
    """Makes a host run the jobs that the root wants. Used by one thread."""

    def __init__(
        self, host: JobHost, root: ServerWire, say: Say, clock: Callable[[], float]
    ) -> None:
        self._host, self._root, self._say, self._clock = host, root, say, clock
        self.running: dict[str, JobTicket] = {}
        self._failed: dict[JobTicket, tuple[float, str]] = {}
        """When a job could not be started, and the message that was reported."""
        self._idle = False
        """True once it was reported that there is no job for this node."""

    def follow(self, wanted: list[JobTicket]) -> None:
        """Stop the jobs that are not wanted any more, and start new ones."""
        if wanted:
            self._idle = False
        elif not self.running and not self._idle:
            self._idle = True
            self._say(f"{self._root.name} has no job for this node: is --node right?")
        names = {ticket.name for ticket in wanted}
        for name, ticket in list(self.running.items()):
            if ticket not in wanted:
                self._host.stop(name)
                del self.running[name]
                if name not in names:
                    self._say(f"job {name!r} ends here: the root no longer wants it")
        self._failed = {
            ticket: failure for ticket, failure in self._failed.items() if ticket in wanted
        }
        for ticket in wanted:
            if ticket.name not in self.running:
                self._start(ticket)

    def _start(self, ticket: JobTicket) -> None:
        failed_at, reported = self._failed.get(ticket, (0.0, ""))
        if reported and self._clock() - failed_at < AGAIN:
            return
        try:
            definition = self._fetched(job_path(ticket.name, "definition"))
            published = msgspec.json.decode(definition, type=_PublishedVersion)
            if published.version != ticket.version:
                return  # the job has changed meanwhile: the next hello brings the new ticket
            self._host.start(ticket, definition, self._package)
        except SILENT:
            return  # retried after the next hello
        except (MillstreamError, msgspec.DecodeError) as error:
            sentence = f"job {ticket.name!r} cannot run here: {error}"
            if sentence != reported:
                self._say(sentence)
            self._failed[ticket] = self._clock(), sentence
        else:
            self._failed.pop(ticket, None)
            self.running[ticket.name] = ticket

    def _package(self, name: str) -> bytes:
        return self._fetched(f"/packages/{quote(name, safe='')}")

    def _fetched(self, path: str) -> bytes:
        answer = self._root.get(path)
        if answer.status != 200:
            raise MillstreamError(f"{self._root.name} does not provide it: {answer.sentence()}")
        return answer.body
