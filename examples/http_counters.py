"""Live counters of the requests to the parts of a web site (Muppet, section 2).

A record is a line of a web server's log in the combined format, as text or in a record's field
`line`, or a JSON record with `time`, `path`, `status` and `bytes`. Each request is counted under
its section (`section:/products`) and under its status (`status:404`): in `total` for ever, and in
`minute` for each minute (`section:/products@2012-06-01T13:45`) until two hours after its last
request, when the slate's time to live is over. A line that cannot be read becomes a dead letter.

    python examples/generate.py http_counters --events 10000 --out /tmp/requests
    millstream run examples/http_counters.py --source requests=json:/tmp/requests --available-now
    millstream slates get total status:404
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import millstream as ms

COMBINED = re.compile(
    r'(?P<host>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>\S+)[^"]*" '
    r"(?P<status>\d{3}) (?P<bytes>\d+|-)"
)


def fields(record: Any) -> dict[str, Any]:
    """The fields of a request, from a line of the log or from a record that has them already."""
    line = record if isinstance(record, str) else record.get("line")
    if line is None:
        return dict(record)
    match = COMBINED.match(line)
    if match is None:
        raise ValueError(f"not a line in the combined log format: {line!r}")
    return match.groupdict()


def time_of(record: Any) -> str:
    """When the request was made, as ISO-8601 text."""
    time = str(fields(record)["time"])
    if time[:4].isdigit():
        return time
    return datetime.strptime(time, "%d/%b/%Y:%H:%M:%S %z").isoformat()


app = ms.App("http_counters")
app.source("requests", ts=time_of)


@app.map("requests", publishes=("requests_by_part", "requests_by_minute"))
def parse(event: ms.Event) -> Iterator[object]:
    request = fields(event.value)
    section = "/" + request["path"].split("?")[0].lstrip("/").split("/")[0]
    size = 0 if request["bytes"] == "-" else int(request["bytes"])
    minute = datetime.fromtimestamp(event.ts // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M")
    for part in (f"section:{section}", f"status:{request['status']}"):
        yield ms.emit("requests_by_part", key=part, value=size)
        yield ms.emit("requests_by_minute", key=f"{part}@{minute}", value=size)


@dataclass
class Counter:
    """Requests, and the bytes that answered them."""

    requests: int = 0
    bytes: int = 0


def add(event: ms.Event, slate: Counter) -> None:
    slate.requests += 1
    slate.bytes += event.value


app.update("requests_by_part", slate=Counter, name="total")(add)
app.update("requests_by_minute", slate=Counter, ttl="2h", name="minute")(add)
