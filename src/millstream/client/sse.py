"""Parses server-sent events as specified by the HTML standard (section 9.2.6).

A parser is fed bytes as they come, cut anywhere, and yields complete events. An event that is
unfinished when the connection ends is dropped. This module does no I/O: `event_stream` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event. `id` is the last id received, with this event or an earlier one."""

    kind: str
    data: str
    id: str


class EventParser:
    """Parses the events in a stream of bytes.

    >>> parser = EventParser(last_id="6")
    >>> list(parser.feed(b"event: record" + bytes([10]) + b"data: 1" + bytes([10])))
    []
    >>> list(parser.feed(bytes([10])))
    [ServerEvent(kind='record', data='1', id='6')]
    """

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        """The Last-Event-ID to send in order to continue after the events so far."""
        self.retry: float | None = None
        """Seconds to wait before reconnecting, if the server has said so."""
        self._id = last_id
        self._rest = b""
        self._kind = ""
        self._data: list[str] = []
        self._began = False
        self._after_cr = False

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Yields the events that end in this chunk."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # the second half of a line end that was split
        data = self._rest + chunk
        if not self._began:
            if _BOM.startswith(data):
                self._rest = data  # may be a byte order mark, or part of one: wait for more
                return
            self._began, data = True, data.removeprefix(_BOM)
        if chunk:
            self._after_cr = data.endswith(b"\r")
        *lines, self._rest = _LINE_END.split(data)
        for line in lines:
            if line:
                self._field(line.decode(errors="replace"))
            else:
                event = self._dispatch()
                if event is not None:
                    yield event

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry = int(value) / 1000
        # a line that begins with a colon has no name: it is a comment

    def _dispatch(self) -> ServerEvent | None:
        kind, data = self._kind or "message", "\n".join(self._data)
        self._kind, self._data, self.last_id = "", [], self._id
        return ServerEvent(kind, data, self.last_id) if data else None
