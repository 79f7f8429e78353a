"""A store with a job whose nodes are agents: what they tell is taken in by the reference, and the
tables that the root then has are committed as a driver would.

made = JobStore(tmp_path / "store")
made.tell(begins("web1", 0), data("web1", 0, records=12, total=12))
made.tell(lost("web2", 0, "shed", shed=7, total=7))
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from held_lock import hold
from server.served import MadeStore

import millstream as ms
from millstream.description import describe, read_description, write_description
from millstream.stores.layout import table_of
from millstream.windows.panes.message import Why, manifest
from millstream.windows.placed import PlacedJob

MINUTE = 60_000_000
NODES = ("web1", "web2", "web3")


def withdraw(made: JobStore) -> None:
    """Leave an application without jobs, as a run does."""
    description = read_description(made.path)
    assert description is not None
    write_description(made.path, msgspec.structs.replace(description, parts={}))


def publish(made: JobStore, published: dict[str, Any] | None) -> None:
    """Leave the definition of the job for agents, as a run does."""
    description = read_description(made.path)
    assert description is not None
    part = {**description.parts["errors"], "definition": published}
    write_description(made.path, msgspec.structs.replace(description, parts={"errors": part}))


def words(record: dict[str, Any]) -> Iterator[tuple[str, int]]:
    yield record["word"], 1


def application(**options: Any) -> ms.App:
    """Ten minutes every five, of panes of a minute, of three nodes."""
    given = {"range": "10m", "slide": "5m", "pane": "1m", **options}
    app = ms.App("logs")
    app.add(
        ms.windows.Job(map=words, combine=lambda a, b: a + b, **given),
        name="errors",
        nodes=NODES,
        logs=ms.windows.Logs(ts="time"),
    )
    return app


def told(node: str, pane: int, until: int | None = None, **counts: Any) -> dict[str, Any]:
    """A message of one node."""
    empty = manifest(counts.pop("mark", "empty"), counts.pop("total", 0))
    said = {**msgspec.to_builtins(empty), **counts}
    partials = {"a": said["records"]} if said["records"] else {}
    until = pane + 1 if until is None else until
    return {"tree": node, "pane": pane, "until": until, "nodes": {node: said}, "partials": partials}


def begins(node: str, pane: int, total: int = 0) -> dict[str, Any]:
    """A node says where it is."""
    return told(node, pane, pane, total=total)


def data(node: str, pane: int, records: int, total: int, **counts: Any) -> dict[str, Any]:
    """A pane with records, of 10 bytes each; `total` have been read up to its end."""
    sizes = {"records": records, "bytes": 10 * records}
    return told(node, pane, mark="data", total=total, **sizes, **counts)


def lost(node: str, pane: int, why: Why, shed: int, total: int) -> dict[str, Any]:
    """A pane that was given up, with so many records in it."""
    return told(node, pane, mark="lost", why=why, shed=shed, shed_bytes=10 * shed, total=total)


class JobStore(MadeStore):
    """The store of `application`, which seems to run: its driver is the test."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.job_app = application(**options)
        [placed] = [one for one in self.job_app.parts.values() if isinstance(one, PlacedJob)]
        self.span = placed.job.span.text
        workflow = self.job_app.workflow()
        kinds = {one.name: one.kind for one in workflow.functions if hasattr(one, "kind")}
        super().__init__(path, kinds, app="logs")
        panes = f"log:{self.home.log_of('errors.panes')}"
        write_description(path, describe(workflow, {"errors.panes": panes}))
        hold(path)
        self.run = ms.testing.run(self.job_app)
        self.stored: dict[str, dict[str, Any]] = {}

    def tell(self, *messages: dict[str, Any]) -> int:
        """Commits the root's table after these messages, one after the other."""
        for message in messages:
            self.run.tick(by="1ms").feed({"errors.panes": [{**message, "span": self.span}]})
        assert self.run.dead_letters == []
        return self._stored()

    def reduce(self, number: int) -> int:
        """Commits the root's table after a change of the number of reducers."""
        self.run.tick(by="1ms").feed({"errors.panes": [{"tree": "", "reducers": number}]})
        assert self.run.dead_letters == []
        return self._stored()

    def wait(self, duration: str) -> int:
        """Commit what the root has after so long on the wall clock."""
        self.run.tick(by=duration)
        return self._stored()

    def _stored(self) -> int:
        tables = self.run.slates("errors.root")
        changes = {
            key: {**dict.fromkeys(self.stored.get(key, {})), **table}
            for key, table in tables.items()
        }
        self.stored = tables
        agreed = self.run.slates("errors.reducers")
        return self.commit({"errors.root": changes, "errors.reducers": agreed})

    def _rows(self, update: str, key: str, slate: Any, ts: int) -> dict[bytes, bytes | None]:
        """An entry that is None is gone."""
        rows = super()._rows(update, key, slate, ts)
        if self.home.facts.updates[update] != "table":
            return rows
        gone = [entry for entry, value in slate.items() if value is None]
        return {**rows, **{table_of(update, key) + entry.encode(): None for entry in gone}}
