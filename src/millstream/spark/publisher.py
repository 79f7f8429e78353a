"""From staged output to the sinks.

The output of a batch is staged durably before the batch is committed, and published after it, in
content order. A staged file is removed once every sink has its rows; so what is still staged at a
start is what the last driver did not get to, and is published then. A repeat replaces itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from millstream.codec import canonical, decode_value
from millstream.engine.progress import Report, event_row
from millstream.sinks.columns import DEADLETTER_COLUMNS, EVENT_COLUMNS, LATE_COLUMNS
from millstream.sinks.files import FileSink
from millstream.sources.address import Address
from millstream.stores.durable import write_whole
from millstream.stores.home import Home

JSON_LINES = "jsonl"


class Publisher:
    """Stages and publishes the output of a query's batches."""

    def __init__(self, home: Home, query: str, sinks: dict[str, Address]) -> None:
        self._home = home
        own = {name: Address(JSON_LINES, str(home.path / name)) for name in ("deadletters", "late")}
        columns = {"deadletters": DEADLETTER_COLUMNS, "late": LATE_COLUMNS}
        self._sinks: dict[str, list[FileSink]] = {}
        for name, address in [*own.items(), *sinks.items()]:
            sink = FileSink(
                address.path,
                "parquet" if address.format == "parquet" else JSON_LINES,
                query,
                columns.get(name, EVENT_COLUMNS),
                name=name,
            )
            self._sinks.setdefault(name, []).append(sink)

    def stage(self, batch: int, reports: Iterable[Report]) -> None:
        """Keep the rows that came with the reports; larger outputs are staged by their tasks."""
        inline = [r for r in reports if r.outputs or r.late_events or r.letters]
        if inline:
            body = Report()
            for report in inline:
                for stream, rows in report.outputs.items():
                    body.outputs.setdefault(stream, []).extend(rows)
                body.late_events.extend(report.late_events)
                body.letters.extend(report.letters)
            path = self._home.staging / f"{batch:012d}-driver.rows"
            write_whole(path, msgspec.msgpack.encode(body))

    def discard(self, after: int, keep: Iterable[str] | None = None, batch: int = -1) -> None:
        """Remove what batches after `after` staged, and of `batch` what no report names."""
        kept = set(keep or ())
        for path in self._home.staging.glob("*.rows"):
            number = int(path.name[:12])
            stray = number == batch and not path.name.endswith("-driver.rows")
            if number > after or (stray and keep is not None and path.name not in kept):
                path.unlink(missing_ok=True)

    def publish(self, committed: int) -> None:
        """Publish everything staged up to the committed batch."""
        batches = sorted({int(p.name[:12]) for p in self._home.staging.glob("*.rows")})
        for batch in batches:
            if batch <= committed:
                self._publish(batch)

    def _publish(self, batch: int) -> None:
        paths = sorted(self._home.staging.glob(f"{batch:012d}-*.rows"))
        bodies = [msgspec.msgpack.decode(p.read_bytes(), type=Report) for p in paths]
        rows: dict[str, list[dict[str, Any]]] = {}
        for stream in {name for body in bodies for name in body.outputs}:
            events = [row for body in bodies for row in body.outputs.get(stream, ())]
            events = sorted((ts, canonical(value), key) for ts, key, value in events)
            rows[stream] = [event_row(ts, key, decode_value(value)) for ts, value, key in events]
        late = sorted(
            (ts, stream, canonical(value), key)
            for body in bodies
            for stream, ts, key, value in body.late_events
        )
        rows["late"] = [
            {"stream": stream, **event_row(ts, key, decode_value(value))}
            for ts, stream, value, key in late
        ]
        letters = [letter for body in bodies for letter in body.letters]
        rows["deadletters"] = sorted(letters, key=_letter_order)
        for name, sinks in self._sinks.items():
            for sink in sinks:
                sink.publish(batch, rows.get(name, []))
        for path in paths:
            path.unlink(missing_ok=True)


def _letter_order(letter: dict[str, Any]) -> tuple[Any, ...]:
    place = (letter["file"] or "", letter["line"] or 0)
    return letter["ts"], letter["function"] or "", letter["key"], *place, letter["error"]
