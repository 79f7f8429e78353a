"""Starts a server in a process of its own, as `millstream run` does (see `child_process`)."""

from __future__ import annotations

import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from millstream.child_process import ChildProcess
from millstream.errors import MillstreamError, RunError
from millstream.server.options import ServerOptions, check

START_SECONDS = 60.0
MIRROR_SECONDS = 3_600.0
"""The same limit for a server that first creates a mirror of a shared store."""


class ChildReport(msgspec.Struct):
    """The message of a child to its parent: its address once it is up, or why it is not."""

    url: str = ""
    error: str = ""


class ServerChild:
    """A server that runs beside this process."""

    def __init__(self, process: ChildProcess, url: str) -> None:
        self._process = process
        self.url = url

    @classmethod
    def start(cls, options: ServerOptions) -> ServerChild:
        """Starts a server and waits until it is up; raises MillstreamError if it fails."""
        check(options)
        process = ChildProcess("millstream.server", written(options))
        try:
            return cls(process, _url(process, options))
        except BaseException:
            process.end()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> int:
        """Waits until the server has ended, and returns its exit code."""
        return self._process.wait()

    def stop(self) -> None:
        """Tells the server to stop and waits until it has; kills it if it does not."""
        self._process.end()


def _url(process: ChildProcess, options: ServerOptions) -> str:
    """Waits until the server is up, and returns its address."""
    patience = MIRROR_SECONDS if options.place else START_SECONDS
    message = process.answer(ChildReport, threading.Event(), patience)
    if message is None and process.ended:
        raise RunError(f"the server ended with code {process.wait()} before it was up; see above")
    if message is None:
        raise RunError(f"the server did not start within {patience:.0f} seconds")
    if message.error:
        raise MillstreamError(message.error)
    return message.url


def written(options: ServerOptions) -> bytes:
    """Encodes options as one line of JSON."""
    return msgspec.json.encode(asdict(options), enc_hook=str)


def options_in(line: bytes) -> ServerOptions:
    """Decodes the options that `written` has encoded."""
    return msgspec.json.decode(line, type=ServerOptions, dec_hook=_path)


def _path(kind: type, value: Any) -> Any:
    return Path(value) if issubclass(kind, Path) else value
