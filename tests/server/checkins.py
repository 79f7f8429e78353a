"""A store of an application with check-ins, as its server knows it, for tests of streams."""

from __future__ import annotations

from pathlib import Path

import httpx
import msgspec
from served import MadeStore

from millstream.description import Description, SourceDescription, write_description
from millstream.log.reader import LogReader
from millstream.log.writer import Entry, LogWriter

NDJSON = {"Content-Type": "application/x-ndjson"}
JSON = {"Content-Type": "application/json"}


def checkins_store(path: Path, log: Path | None = None) -> MadeStore:
    """Sources `checkins`, `clicks` and `texts` in logs, `old` in files, an output, an inner one."""
    made = MadeStore(path, {"count": "dict", "visitors": "table"})
    log = log or made.home.log_of("checkins")
    sources = [
        SourceDescription("checkins", "user", "time", "s", True, f"log:{log}"),
        SourceDescription("clicks", None, None, None, False, f"log:{made.home.log_of('clicks')}"),
        SourceDescription("old", "user", None, None, True, "json:/data/old"),
        SourceDescription(
            *("texts", "at", None, None, True, f"log:{made.home.log_of('texts')}"),
            pattern=r"(?P<at>\d\d:\d\d) (?P<text>(?s:.*))",
            starts=r"\d\d:",
        ),
    ]
    streams = ["checkins", "clicks", "old", "texts", "recognised", "counts"]
    write_description(
        path, Description("retail", "time", sources, [], streams, ["counts"], {"nodes": []})
    )
    return made


def checkin(user: str, time: int = 1_700_000_000) -> bytes:
    return msgspec.json.encode({"user": user, "time": time})


def stored(log: Path) -> list[bytes]:
    """All records of a log."""
    reader = LogReader(log)
    lines = [
        line for block in reader.blocks(reader.start[0], reader.end[0]) for line in block.lines
    ]
    reader.close()
    return lines


def append(log: Path, *lines: bytes, segment_bytes: int = 1 << 26, clock: int | None = None) -> int:
    """Append records to a log as its writer; the number of the first."""
    writer = LogWriter(
        log, segment_bytes=segment_bytes, **({"clock": lambda: clock} if clock else {})
    )
    (found,) = writer.append([Entry.of(list(lines))])
    writer.close()
    assert not isinstance(found, Exception)
    return found.first


def post(client: httpx.Client, body: bytes, **headers: str) -> httpx.Response:
    """Send check-ins, one a line."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post("/streams/checkins", content=body, headers={**NDJSON, **named})
