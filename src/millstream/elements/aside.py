"""Elements that pass events on as they came, and may put some aside on a stream of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.elements.element import Element
from millstream.elements.placing import streams_of
from millstream.errors import DefinitionError
from millstream.model.event import INHERITED, Emit


def check_aside(element: str, name: str, aside: str | None, placement: Mapping[str, Any]) -> None:
    """The stream that a property `name` puts events aside on must be one that is published."""
    streams = streams_of(placement.get("publishes", ()), f"element {element}")
    if aside is not None and aside not in streams:
        raise DefinitionError(
            f"element {element}: publishes must name the stream of {name}, {aside!r}, and those "
            f"that events are passed on to; got {', '.join(map(repr, streams)) or 'none'}"
        )


def passed_on(element: Element, aside: str | None) -> list[Emit]:
    """The event in hand onto all streams of an element but the one for what is put aside."""
    key, streams = element.key, element._publishes
    if aside is None and len(streams) == 1:
        return [Emit(None, key, INHERITED, None)]  # the engine has a short way for it
    return [Emit(stream, key, INHERITED, None) for stream in streams if stream != aside]
