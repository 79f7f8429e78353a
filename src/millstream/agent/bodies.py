"""Messages as they are sent: one JSON value in a line.

A server takes lines of up to 8 MiB. A pane that would be longer, or that holds what JSON cannot
carry, is told as lost, with its records counted: it would be refused again and again, and nothing
after it would be sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from millstream.agent.outbox import Say
from millstream.codec import encode_value
from millstream.errors import CodecError
from millstream.windows.message import Manifest, Message

LONGEST = 8 << 20
"""Bytes of a line that a server takes."""


def body_of(message: Message) -> bytes:
    """The line of a message, without its end; CodecError if JSON cannot carry it."""
    # Only among the partials is there a float that JSON has no word for, and only they are many.
    partials = msgspec.Raw(encode_value(message["partials"]))
    return msgspec.json.encode({**message, "partials": partials})


def fitted(message: Message, say: Say) -> tuple[Message, bytes]:
    """What is sent of a node's own message, and its line: itself, or that its pane is lost."""
    try:
        body = body_of(message)
    except CodecError as error:
        say(f"pane {message['pane']}: it cannot be sent, and counts as lost: {error}")
        gone = _lost(message, "dead")
        return gone, body_of(gone)
    if len(body) <= LONGEST:
        return message, body
    say(
        f"pane {message['pane']}: its {len(message['partials'])} keys take {len(body)} bytes, and "
        f"at most {LONGEST} can be sent: it counts as lost; give the job shorter panes or fewer "
        "keys"
    )
    gone = _lost(message, "shed")
    return gone, body_of(gone)


def lines(bodies: Iterable[bytes]) -> bytes:
    """A request's body."""
    return b"".join(body + b"\n" for body in bodies)


def _lost(message: Message, counted: str) -> Message:
    """The message without its records, which are counted as `shed` or as `dead`."""
    nodes: dict[str, Manifest] = {}
    for node, told in message["nodes"].items():
        gone: dict[str, Any] = {**told, "mark": "lost", "why": "memory"}
        gone |= {"records": 0, "bytes": 0, "first": None, "last": None}
        gone[counted] += told["records"]
        if counted == "shed":
            gone["shed_bytes"] += told["bytes"]
        nodes[node] = Manifest(**gone)  # type: ignore[typeddict-item]  # all fields are there
    return {**message, "nodes": nodes, "partials": {}}
