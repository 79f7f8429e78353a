"""A child process that serves its parent and never outlives it.

A child gets its order as one line on stdin, and answers with one line on stdout once it is ready or
has failed to start. It ends when its stdin ends: the parent has closed it, or has died in any way.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TypeVar

import msgspec

STOP_SECONDS = 5.0
"""The time that the parent gives a child to end before it kills it."""
END_SECONDS = 1.8
"""The time that a child has to end after its stdin has ended; then it exits, whatever hangs."""
LOOK_SECONDS = 0.2
Answer = TypeVar("Answer", bound=msgspec.Struct)


class ChildProcess:
    """The parent's side: a module of Millstream that runs in a process of its own."""

    def __init__(self, module: str, order: bytes) -> None:
        self._process = subprocess.Popen(
            # -P: nothing is imported from the user's working directory.
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C is for this process, which then closes the child's stdin
        )
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(order + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # the child has ended: `answer` gives None, and `wait` its exit code

    @property
    def pid(self) -> int:
        return self._process.pid

    def answer(self, kind: type[Answer], stop: threading.Event, seconds: float) -> Answer | None:
        """Returns its answer; None if it ended, `stop` was set or the time was over before it."""
        pipe, lines = self._process.stdout, list[bytes]()
        assert pipe is not None
        reading = threading.Thread(target=lambda: lines.append(pipe.readline()), daemon=True)
        reading.start()
        waited = 0.0
        while reading.is_alive() and waited < seconds and not stop.is_set():
            reading.join(LOOK_SECONDS)
            waited += LOOK_SECONDS
        if lines and not lines[0]:
            self._process.wait()  # so that `ended` is true
        return msgspec.json.decode(lines[0], type=kind) if lines and lines[0] else None

    def wait(self) -> int:
        """Waits until it has ended and returns its exit code."""
        return self._process.wait()

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> None:
        """Tells it to end and waits until it has; kills it if it does not end in time."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass  # it ended before it had read its order
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def order_from_parent(stop: threading.Event) -> bytes:
    """The child's side: reads its order, empty if the parent is gone. `stop` is set when the parent
    wants the child to end, or has died."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent closes stdin instead
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    line = sys.stdin.buffer.readline()
    if line:
        threading.Thread(target=_until_stdin_ends, args=(stop,), daemon=True).start()
    return line


def answer_parent(answer: msgspec.Struct) -> None:
    """The child's side: tells the parent that it is ready, or why it has failed to start."""
    try:
        os.write(1, msgspec.json.encode(answer) + b"\n")
    except BrokenPipeError:
        pass  # the parent is gone, so this process will end too


def _until_stdin_ends(stop: threading.Event) -> None:
    while os.read(0, 4_096):
        pass
    ending = threading.Timer(END_SECONDS, os._exit, [1])
    ending.daemon = True
    ending.start()
    stop.set()
