"""The jobs that the root tells an agent to run: fetched, started and stopped.

The root names them, with their versions; a definition is fetched when its version is new. What is
then done with it is the host's: it fetches the package that the definition may name, and checks
whether that may run here. A job that cannot is said once, and tried again after a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from urllib.parse import quote

import msgspec

from millstream.agent.outbox import Say
from millstream.agent.wire import SILENT, Wire, job_path
from millstream.errors import MillstreamError
from millstream.trees.messages import JobTicket

AGAIN = 300.0
"""Seconds after which a job that could not be started is tried again."""


class JobHost(Protocol):
    """What runs jobs in this agent. A job that is started again has another version."""

    def start(self, ticket: JobTicket, definition: bytes, fetch: Callable[[str], bytes]) -> None:
        """Run a job. `definition` is what GET /jobs/NAME/definition answers; `fetch` gets a package
        by its hash. MillstreamError if it cannot be run here, or must not be."""

    def stop(self, name: str) -> None:
        """End a job; what it has made is sent still."""


class _Published(msgspec.Struct):
    """What of a definition is looked at here."""

    version: str


class JobHosting:
    """Brings a host to what the root wants. Used by one thread."""

    def __init__(self, host: JobHost, root: Wire, say: Say, clock: Callable[[], float]) -> None:
        self._host, self._root, self._say, self._clock = host, root, say, clock
        self.running: dict[str, JobTicket] = {}
        self._failed: dict[JobTicket, tuple[float, str]] = {}
        """When a job could not be started, and why."""

    def follow(self, wanted: list[JobTicket]) -> None:
        """Stop what is not wanted any more, and start what is new."""
        for name, ticket in list(self.running.items()):
            if ticket not in wanted:
                self._host.stop(name)
                del self.running[name]
        self._failed = {one: why for one, why in self._failed.items() if one in wanted}
        for ticket in wanted:
            if ticket.name not in self.running:
                self._start(ticket)

    def _start(self, ticket: JobTicket) -> None:
        failed, said = self._failed.get(ticket, (0.0, ""))
        if said and self._clock() - failed < AGAIN:
            return
        try:
            definition = self._fetched(job_path(ticket.name, "definition"))
            published = msgspec.json.decode(definition, type=_Published)
            if published.version != ticket.version:
                return  # it has changed meanwhile: the next hello brings the new ticket
            self._host.start(ticket, definition, self._package)
        except SILENT:
            return  # asked for again after the next hello
        except (MillstreamError, msgspec.DecodeError) as error:
            sentence = f"job {ticket.name!r} cannot run here: {error}"
            if sentence != said:
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
            raise MillstreamError(f"{self._root.name} does not give it: {answer.sentence()}")
        return answer.body
