"""`millstream send`: sends events from files, a pipe or the command line to a server's stream.

Lines are sent unchanged; the server says which of them it refuses, and why. Lines from a pipe are
sent as they come, and a file in batches.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from millstream.cli.which_server import open_client, url_options
from millstream.errors import CommandError, MillstreamError
from millstream.notices import say

if TYPE_CHECKING:
    from millstream.client import Sent

SECONDS_BETWEEN = 0.2
PIECE = 1024 * 1024
LONGEST = 1024 * 1024
"""The longest line that the client sends. One byte more is kept of a longer line, which shows that
it is too long."""


@click.command()
@click.argument("stream")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path))
@click.option("--event", "events", multiple=True, metavar="JSON", help="An event. Repeatable.")
@url_options
@click.pass_context
def send(
    ctx: click.Context,
    stream: str,
    files: tuple[Path, ...],
    events: tuple[str, ...],
    url: str | None,
    token_file: Path | None,
) -> None:
    """Send events to a source: one JSON value a line, from files or from stdin.

    An event counts as accepted once it is on the server's disk. A broken connection is opened
    again, and nothing counts twice. Each refused line is shown, with the reason; the command then
    exits with 1.

    \b
    Examples:
        millstream send checkins data/monday.jsonl data/tuesday.jsonl
        millstream send checkins --event '{"user": "ann", "venue": "Walmart"}'
        tail -f checkins.jsonl | millstream send checkins
    """
    if files and events:
        raise CommandError("send files or --event, not both")
    tally = SendTally(_size(files), time.monotonic)
    try:
        with open_client(url, token_file) as client:
            for name, lines in _inputs(files, events, tally):
                tally.name = name
                client.send_lines(stream, lines, progress=tally)
    except (MillstreamError, KeyboardInterrupt):
        tally.clear()
        if tally.accepted or tally.refused:
            click.echo(tally.words())
        raise
    tally.clear()
    click.echo(tally.words())
    ctx.exit(1 if tally.refused else 0)


def _size(files: tuple[Path, ...]) -> int:
    """Returns the bytes of all files, 0 for a pipe; all must exist before any of them is sent."""
    try:
        return sum(os.stat(file).st_size for file in files)
    except OSError as error:
        raise _unreadable(Path(error.filename), error) from None


def _inputs(
    files: tuple[Path, ...], events: tuple[str, ...], tally: SendTally
) -> Iterator[tuple[str, Iterator[bytes | None]]]:
    """Yields the inputs, each with its name."""
    if events:
        # A JSON string cannot contain a raw line break: here it can only be white space.
        yield "--event", iter([event.replace("\n", " ").encode() for event in events])
    for file in files:
        yield str(file), _lines_in(file, tally)
    if not events and not files:
        if sys.stdin.isatty():
            say("reading events from the terminal, one JSON value a line; Ctrl-D ends")
        yield "stdin", lines_of(cast(BufferedReader, sys.stdin.buffer).read1)


def _lines_in(file: Path, tally: SendTally) -> Iterator[bytes | None]:
    try:
        with file.open("rb") as opened:

            def read(size: int) -> bytes:
                piece = opened.read(size)
                tally.read += len(piece)
                return piece

            # The whole file is there, so no pause (None) needs to end a batch.
            yield from (line for line in lines_of(read) if line is not None)
    except OSError as error:
        raise _unreadable(file, error) from None


def _unreadable(file: Path, error: OSError) -> CommandError:
    return CommandError(f"cannot read {file}: {error.strerror or error}")


class SendTally:
    """Counts the sent lines, shows each refused one, and on a terminal the progress."""

    def __init__(self, total: int, clock: Callable[[], float]) -> None:
        self.name = ""
        """The name of the current input."""
        self.accepted = 0
        self.refused = 0
        self.read = 0
        self._total = total
        self._clock = clock
        self._shown: float | None = None

    def __call__(self, sent: Sent) -> None:
        self.accepted += sent.accepted
        self.refused += sent.refused_count
        if sent.refused:
            self.clear()
        for refused in sent.refused:
            click.echo(f"{self.name}:{refused.line}: {refused.error}: {refused.text}", err=True)
        more = sent.refused_count - len(sent.refused)
        if more:
            click.echo(f"{self.name}: ... and {more:,} more after line {refused.line}", err=True)
        self._show()

    def words(self) -> str:
        return f"accepted {self.accepted:,}, refused {self.refused:,}"

    def clear(self) -> None:
        """Erases the progress line."""
        if self._shown is not None:
            click.echo("\r\x1b[K", nl=False, err=True)

    def _show(self) -> None:
        now = self._clock()
        if self._shown is None and not sys.stderr.isatty():
            return
        if self._shown is None or now - self._shown >= SECONDS_BETWEEN:
            self._shown = now
            share = f" ({self.read / self._total:.0%} of the input)" if self._total else ""
            click.echo(f"\rmillstream: {self.words()}{share} ", nl=False, err=True)


def lines_of(read: Callable[[int], bytes]) -> Iterator[bytes | None]:
    """Yields the lines from `read` without their ends, and None before each further call of it: a
    line that came through a pipe must be sent even if nothing follows.

    >>> from io import BytesIO
    >>> list(lines_of(BytesIO(b"1" + bytes([10]) + b"2").read))
    [b'1', None, b'2']
    """
    rest = b""
    while piece := read(PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        yield None
        rest = rest[: LONGEST + 1]
    if rest:
        yield rest
