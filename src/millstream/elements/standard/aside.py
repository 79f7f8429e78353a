"""The streams of elements that pass events on unchanged, and may divert some to another stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.elements.element import Element
from millstream.elements.placement import streams_of
from millstream.errors import DefinitionError
from millstream.model.event import INHERITED, Emit


def check_aside(element: str, name: str, aside: str | None, placement: Mapping[str, Any]) -> None:
    """Raises DefinitionError if the stream to which property `name` diverts events is not
    published."""
    streams = streams_of(placement.get("publishes", ()), f"element {element}")
    if aside is not None and aside not in streams:
        raise DefinitionError(
            f"element {element}: publishes must name the stream of {name}, {aside!r}, and those "
            f"that events are passed on to; got {', '.join(map(repr, streams)) or 'none'}"
        )


def passed_on(element: Element, aside: str | None) -> list[Emit]:
    """Emits the current event to all streams of an element except the one for diverted events."""
    key, streams = element.key, element._publishes
    if aside is None and len(streams) == 1:
        return [Emit(None, key, INHERITED, None)]  # the engine has a fast path for this
    return [Emit(stream, key, INHERITED, None) for stream in streams if stream != aside]
