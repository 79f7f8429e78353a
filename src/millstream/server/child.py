"""A server in a process of its own, as `millstream run` starts it.

The child is told its options on its stdin, says on its stdout where it is or why it cannot be, and
ends when its stdin does: by `stop`, or because this process has died, however it died.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import msgspec

from millstream.errors import MillstreamError, RunError
from millstream.server.options import Options, check

START_SECONDS = 60.0
STOP_SECONDS = 5.0


class Told(msgspec.Struct):
    """What a child says when it is up, or that it will not be."""

    url: str = ""
    error: str = ""


class ServerChild:
    """A server that runs beside this process."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self._process = process
        self.url = url

    @classmethod
    def start(cls, options: Options) -> ServerChild:
        """Start one and wait until it is up; MillstreamError says why it is not."""
        check(options)
        process = subprocess.Popen(
            # -P: what lies in the user's directory is not imported.
            [sys.executable, "-P", "-m", "millstream.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C is for this process, which then closes the child's stdin
        )
        child = cls(process, "")
        try:
            child.url = child._told(options).url
        except BaseException:
            child.stop()
            raise
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return self._process.wait()

    def stop(self) -> None:
        """Tell it to stop and wait until it has; one that does not is ended."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass  # it ended before it had read its options
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _told(self, options: Options) -> Told:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(written(options) + b"\n")
            stdin.flush()
        except OSError:
            pass  # it has ended; below is said how
        line = _line_within(stdout, START_SECONDS)
        if line is None:
            raise RunError(f"the server did not start within {START_SECONDS:.0f} seconds")
        if not line:
            code = self._process.wait()
            raise RunError(f"the server ended with code {code} before it was up; see above")
        told = msgspec.json.decode(line, type=Told)
        if told.error:
            raise MillstreamError(told.error)
        return told


def written(options: Options) -> bytes:
    """Options as one line of JSON."""
    return msgspec.json.encode(asdict(options), enc_hook=str)


def options_in(line: bytes) -> Options:
    """The options that `written` wrote."""
    return msgspec.json.decode(line, type=Options, dec_hook=_path)


def _path(kind: type, value: Any) -> Any:
    return Path(value) if issubclass(kind, Path) else value


def _line_within(pipe: IO[bytes], seconds: float) -> bytes | None:
    """A line, nothing if the pipe ended, None if neither came in time."""
    found: list[bytes] = []
    reading = threading.Thread(target=lambda: found.append(pipe.readline()), daemon=True)
    reading.start()
    reading.join(seconds)
    return found[0] if found else None
