"""The description of an application, for the server: it needs none of the application's code.

A run writes it into the store before Spark starts, and the server of the store reads it there. So
the server never loads or runs a user's module. A source whose key or time is a Python function
cannot be tried outside the application: its records are checked when the application reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from millstream.durable import read_record, write_record
from millstream.graph import geometry
from millstream.graph.folded_parts import foldable
from millstream.model.function import Update
from millstream.model.place import location
from millstream.model.source import Source
from millstream.model.text_form import TextForm
from millstream.model.workflow import Workflow

FILE = "app.json"


class SourceDescription(msgspec.Struct, frozen=True):
    """A stream from outside, and where its records come from."""

    name: str
    key: str | None
    ts: str | None
    unit: str | None
    whole: bool
    """True if the description is complete; False if its key or ts is a Python function."""
    address: str
    time_format: str | None = None
    zone: str | None = None
    ahead: int | None = None
    pattern: str | None = None
    """The pattern that turns sent text into records; see model/text_form.py."""
    starts: str | None = None
    until: str | None = None

    @property
    def log(self) -> Path | None:
        """The event log that it reads; None if it reads something else."""
        return Path(self.address.partition(":")[2]) if self.reads_log else None

    @property
    def reads_log(self) -> bool:
        """True if it reads an event log."""
        return self.address.startswith("log:")

    def source(self) -> Source:
        """The source itself, to try records on."""
        return Source(
            self.name,
            self.key,
            self.ts,
            self.unit,
            time_format=self.time_format,
            zone=self.zone,
            ahead=self.ahead,
            text=TextForm(self.pattern, self.starts),
            until=self.until,
        )


class FunctionDescription(msgspec.Struct, frozen=True):
    """A map or an update."""

    name: str
    kind: str
    subscribes: list[str]
    publishes: list[str]
    slate: str | None
    """An update's kind of slate: dict, dataclass, table or aggregate:NAME."""
    ttl: int | None
    place: str
    """The file and line of the function."""
    lookups: dict[str, str] = {}
    """The lookups of a map: a description of each, by name."""
    overflow: str | None = None
    """The stream that an update diverts events to."""
    changes: bool = False
    """True if the changes of an update's slates are published."""


class Description(msgspec.Struct, frozen=True):
    """A whole application."""

    app: str
    order: str
    sources: list[SourceDescription]
    functions: list[FunctionDescription]
    streams: list[str]
    """All streams, the sources first."""
    outputs: list[str]
    graph: dict[str, Any]
    """The positions of everything in a drawing; see graph/geometry.py."""
    parts: dict[str, Any] = {}
    """The descriptions of the application's parts, such as its jobs, by name."""
    addresses: dict[str, str] = {}
    """The addresses of outputs and actions, without secrets; one without goes to its log only."""
    folded: dict[str, Any] = {}
    """The same drawing with each job and feed folded into one node, by the name of the one that
    stays unfolded; under the empty name, all are folded."""

    @property
    def function_names(self) -> list[str]:
        return [function.name for function in self.functions]

    @property
    def overflows(self) -> dict[str, tuple[str, str]]:
        """By diverting update: its overflow stream, and the stream on which a retried event is
        delivered. That is the update's input if it has only one, else the overflow stream."""
        return {
            function.name: (
                function.overflow,
                function.subscribes[0] if len(function.subscribes) == 1 else function.overflow,
            )
            for function in self.functions
            if function.overflow is not None
        }


def describe(
    workflow: Workflow, addresses: Mapping[str, str], outputs: Mapping[str, str] | None = None
) -> Description:
    """Describes a workflow. `addresses` are those of its sources, `outputs` those of its outputs,
    without secrets."""
    outputs = outputs or {}
    changing = {changes.update for changes in workflow.changes}
    parts = foldable(workflow.parts)
    return Description(
        workflow.name,
        workflow.order,
        [_source(source, addresses[source.name]) for source in workflow.sources],
        [
            FunctionDescription(
                function.name,
                "update" if isinstance(function, Update) else "map",
                list(function.subscribes),
                list(function.publishes),
                function.kind if isinstance(function, Update) else None,
                function.ttl if isinstance(function, Update) else None,
                location(function.function).strip(" ()"),
                {}
                if isinstance(function, Update)
                else {lookup.name: lookup.shown for lookup in function.lookups},
                function.overflow if isinstance(function, Update) else None,
                function.name in changing,
            )
            for function in workflow.functions
        ],
        list(workflow.streams),
        list(workflow.outputs),
        geometry(workflow, outputs),
        dict(workflow.parts),
        dict(outputs),
        {
            left_open: geometry(workflow, outputs, [name for name in parts if name != left_open])
            for left_open in ("", *parts)
            if parts
        },
    )


def write_description(store: Path, description: Description) -> None:
    """Writes the description into a store, for the server of the store."""
    data = msgspec.json.encode(description)
    if read_record(store / FILE) != data:
        write_record(store / FILE, data)


def read_description(store: Path) -> Description | None:
    """Returns the description that the last run wrote into a store; None if there is none yet."""
    data = read_record(store / FILE)
    return None if data is None else msgspec.json.decode(data, type=Description)


def _source(source: Source, address: str) -> SourceDescription:
    key, ts = (path if isinstance(path, str) else None for path in (source.key, source.ts))
    whole = not callable(source.key) and not callable(source.ts)
    return SourceDescription(
        source.name,
        key,
        ts,
        source.unit,
        whole,
        address,
        source.time_format,
        source.zone,
        source.ahead,
        source.text.pattern,
        source.text.starts,
        source.until,
    )
