r"""Sessions of a site's users, from the access logs of its servers (iMR, section 5.4).

For each user and two hours: how many sessions, how long on average, and how many clicks in one
(`sessions`); and the same over all users (`totals`). A session ends when its user has not clicked
for half an hour; one that goes on past the end of a window is cut there. The clicks of a user are
in the logs of several servers, and a session has panes of 6 minutes of each.

Make logs, or spread the lines of a real one with `--log access.log`, and read them on Spark:

    python -m examples.imr.click_traffic --out /tmp/clicks
    millstream run examples/click_sessions.py:files --final \
        --source web1=json:/tmp/clicks/web1 --source web2=json:/tmp/clicks/web2 \
        --source web3=json:/tmp/clicks/web3 --source web4=json:/tmp/clicks/web4 \
        --sink sessions=json:/tmp/sessions --sink totals=json:/tmp/totals

Or leave them where they are, with an agent beside each (`--once`: a log that grows no more):

    millstream run examples/click_sessions.py:app
    millstream agent examples/click_sessions.py:app --job sessions --node web1 \
        --log '/tmp/clicks/web1.log' --root http://127.0.0.1:8470 --once   # and so on for each
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

# A folder of scripts: beside `millstream run` its modules are found from the checkout.
sys.path.append(str(Path(__file__).resolve().parent.parent))

import millstream as ms
from examples.imr.by_window import bounds, by_window, is_over

NODES = ("web1", "web2", "web3", "web4")
GAP = 30 * 60
"""Seconds without a click that end a session."""
PATTERN = r"(?P<user>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] .*"
TIME_FORMAT = "%d/%b/%Y:%H:%M:%S %z"
LINE = re.compile(PATTERN)
LOGS = ms.windows.Logs(pattern=PATTERN, ts="time", time_format=TIME_FORMAT)

Session = list[int]
"""The first click and the last one, in seconds, and how many there were."""


def moment(record: dict[str, str]) -> datetime:
    """When a click was made."""
    return _parsed(record["time"])


@lru_cache(maxsize=4_096)
def _parsed(text: str) -> datetime:
    return datetime.strptime(text, TIME_FORMAT)


def clicks(record: dict[str, str]) -> Iterator[tuple[str, list[Session]]]:
    """A click is a session of its own, until it meets others."""
    at = int(moment(record).timestamp())
    yield record["user"], [[at, at, 1]]


def joined(a: list[Session], b: list[Session]) -> list[Session]:
    """The sessions of two lots of clicks: those that are within half an hour become one.

    Exact, in whatever order panes and nodes come. Sessions hold no gap of over half an hour; so
    where two of them overlap, or are so near, two of their clicks are so near, too.
    """
    sessions: list[Session] = []
    for first, last, count in sorted([*a, *b]):
        if sessions and first - sessions[-1][1] <= GAP:
            sessions[-1] = [sessions[-1][0], max(sessions[-1][1], last), sessions[-1][2] + count]
        else:
            sessions.append([first, last, count])
    return sessions


def about(user: str, values: Sequence[list[Session]]) -> dict[str, Any]:
    """Returns a user's sessions, and their total length and clicks."""
    (sessions,) = values
    return _said(
        len(sessions),
        sum(last - first for first, last, _ in sessions),
        sum(count for _, _, count in sessions),
    )


def _said(sessions: int, seconds: int, count: int) -> dict[str, Any]:
    return {"sessions": sessions, "duration": seconds / sessions, "clicks": count / sessions}


def click_sessions(**asked: Any) -> ms.windows.Job:
    """The job; `asked` is what is asked of its windows: a fidelity, a latency, other sizes."""
    sizes: dict[str, Any] = {"range": "2h", "pane": "6m"}
    return ms.windows.Job(map=clicks, combine=joined, reduce=about, **{**sizes, **asked})


@dataclass
class Totals:
    """Sums over the users of a window that have been answered so far."""

    users: int = 0
    sessions: int = 0
    seconds: float = 0
    clicks: float = 0
    answered: int = 0


def totals(event: ms.Event, slate: Totals) -> Iterator[Any]:
    """Adds a window's users up, and speaks when it is over."""
    if "over" not in event.value:
        answer = event.value["answer"]
        slate.users += 1
        slate.sessions += answer["sessions"]
        slate.seconds += answer["sessions"] * answer["duration"]
        slate.clicks += answer["sessions"] * answer["clicks"]
        return
    slate.answered += 1
    if is_over(event.value["over"], slate.answered):
        if slate.sessions:
            said = _said(slate.sessions, round(slate.seconds), round(slate.clicks))
            whole = {**bounds(event.value["over"]), "users": slate.users, **said}
            yield ms.emit(value=whole)
        yield ms.forget()


def application(
    name: str,
    job: ms.windows.Job,
    nodes: Sequence[str] = NODES,
    logs: ms.windows.Logs | None = None,
) -> ms.App:
    """The job and its totals: with `logs` panes come from agents, without from files."""
    app = ms.App(name, order="event-time" if logs is None else "arrival")
    if logs is None:
        for node in nodes:
            app.source(node, ts=moment, lateness="1m")
    app.add(job, name="sessions", nodes=list(nodes), **({} if logs is None else {"logs": logs}))
    by = "sessions.by_window"
    app.map("sessions", "sessions.windows", publishes=by, name="by_window")(by_window)
    app.output("totals")
    app.update(by, publishes="totals", slate=Totals)(totals)
    return app


job = click_sessions()
app = application("click-sessions", job, logs=LOGS)
files = application("click-sessions-files", job)
