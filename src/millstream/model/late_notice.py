"""Notices of late events, for functions that must know what their stream lacks.

In event-time order a late event is set aside: no function of its stream gets it. A stream that is
declared with `late_of` carries a notice of it instead. The notice's time is a microsecond after the
horizon that the event has missed, so it comes in order; its key is the event's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.model.event import Event
from millstream.model.workflow import Workflow


@dataclass(frozen=True, slots=True)
class LateNotice:
    """The value of a notice."""

    streams: Sequence[str]
    """Those of `late_of` that the event, or what functions make of it, may have been meant for."""
    ts: int
    """The late event's own time."""
    value: Any


def late_notice(stream: str, streams: Sequence[str], event: Event, missed: int) -> Event:
    """Returns the notice on `stream` of an event that has missed the horizon `missed`."""
    value = LateNotice([*streams], event.ts, event.value)
    return Event(stream, missed + 1, event.key, value)


def late_notices(workflow: Workflow, source: str) -> dict[str, tuple[str, ...]]:
    """Returns the streams with notices of a source's late events, each with those of its `late_of`
    that the source leads to."""
    noticed = [stream for stream in workflow.declared if stream.late_of]
    if not noticed or workflow.order == "arrival":
        return {}
    reached, left = {source}, [source]
    while left:
        for function in workflow.subscribers(left.pop()):
            fresh = {*function.emits} - reached
            reached |= fresh
            left += fresh
    notices = {
        stream.name: tuple(name for name in stream.late_of if name in reached) for stream in noticed
    }
    return {stream: names for stream, names in notices.items() if names}
