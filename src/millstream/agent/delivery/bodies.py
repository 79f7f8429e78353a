"""Encodes messages for sending: one JSON value in a line.

A server takes lines of up to 8 MiB. A pane that is longer, or that has a value that JSON cannot
carry, is reported as lost, with its records counted. Otherwise it would be refused again and again,
and nothing after it would be sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec.structs import replace

from millstream.agent.delivery.outbox import Say
from millstream.codec import encode_value
from millstream.counted_nouns import counted
from millstream.errors import CodecError
from millstream.windows.panes.message import Message, PaneManifest

LONGEST = 8 << 20
"""The longest line that a server takes, in bytes."""


def body_of(message: Message) -> bytes:
    """Returns a message as a line without a newline. Raises CodecError if JSON cannot carry it."""
    # Only partials can hold floats that JSON cannot carry, and only they are numerous.
    partials = msgspec.Raw(encode_value(message.partials))
    return msgspec.json.encode(replace(message, partials=partials))


def fitted(message: Message, say: Say) -> tuple[Message, bytes]:
    """Returns the message to send, and its line.

    It is the given message or, if that cannot be sent, one that reports its pane as lost.
    """
    try:
        body = body_of(message)
    except CodecError as error:
        say(f"pane {message.pane}: it cannot be sent, and counts as lost: {error}")
        lost = _lost(message, "dead")
        return lost, body_of(lost)
    if len(body) <= LONGEST:
        return message, body
    keys = counted(len(message.partials), "key")
    say(
        f"pane {message.pane}: it has {keys} in {len(body):,} bytes, and "
        f"at most {LONGEST} can be sent: it counts as lost; give the job shorter panes or fewer "
        "keys"
    )
    lost = _lost(message, "shed")
    return lost, body_of(lost)


def lines(bodies: Iterable[bytes]) -> bytes:
    """Returns the body of a request that sends `bodies`."""
    return b"".join(body + b"\n" for body in bodies)


def _lost(message: Message, counted: Literal["shed", "dead"]) -> Message:
    """Returns the message without its records, which are counted as `shed` or as `dead`."""
    nodes: dict[str, PaneManifest] = {}
    for node, manifest in message.nodes.items():
        shed, size = (manifest.records, manifest.bytes) if counted == "shed" else (0, 0)
        nodes[node] = replace(
            manifest,
            mark="lost",
            why="memory",
            records=0,
            bytes=0,
            first=None,
            last=None,
            shed=manifest.shed + shed,
            shed_bytes=manifest.shed_bytes + size,
            dead=manifest.dead + manifest.records - shed,
        )
    return replace(message, nodes=nodes, partials={})
