"""What an application declares of its streams and outputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stream:
    """The declared properties of a stream, apart from its readers and writers."""

    name: str
    output: bool = False
    delay: int = 0
    """The least time, in microseconds, by which its events are later than their input."""
    action: bool = False
    """True for an output whose events are carried out after their batch is committed."""
    order_by: str | None = None
    """The numeric field of the value that orders the output of a batch; None: time does."""
    value: type | None = None
    """A dataclass with the fields of the events' values; sinks make columns of them."""
    late_of: tuple[str, ...] = ()
    """If given, the stream carries a `LateNotice` of each late event of the sources that are among
    these streams or lead to them."""


@dataclass(frozen=True, slots=True)
class ChangeOutput:
    """The changes of an update's slates, for sinks and tails: they depend on the batches."""

    name: str
    update: str
