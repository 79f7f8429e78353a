"""Small synthetic logs with the shapes of real ones: those of Loghub, and an access log.

Each shape has the form of its lines (how they write their time) and a difficulty of its times:
inversions of some seconds, quiet hours, a wrong year, no year at all, no order of time. The same
seed gives the same lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Form:
    """The form in which the lines of a log write their time."""

    pattern: str
    time: str | None = None
    """A format for strptime; None: seconds since the epoch."""

    @property
    def logs(self) -> dict[str, Any]:
        """The options of `Logs`."""
        given = {"pattern": self.pattern, "ts": "at"}
        return {**given, "unit": "s"} if self.time is None else {**given, "time_format": self.time}

    def time_of(self, line: bytes) -> int | None:
        """The time of a line in microseconds, as a simple program would parse it; None if it has
        none."""
        match = re.match(self.pattern, line.decode(errors="replace").rstrip("\r"))
        return None if match is None else _parsed(match["at"], self.time)


FORMS = {
    "Access": Form(r"\S+ \S+ \S+ \[(?P<at>[^]]+)\]", "%d/%b/%Y:%H:%M:%S %z"),
    "Android": Form(r"(?P<at>\d\d-\d\d \d\d:\d\d:\d\d\.\d+)", "%m-%d %H:%M:%S.%f"),
    "Apache": Form(r"\[(?P<at>[^]]+)\]", "%a %b %d %H:%M:%S %Y"),
    "BGL": Form(r"\S+ (?P<at>\d+)"),
    "HDFS": Form(r"(?P<at>\d{6} \d{6})", "%y%m%d %H%M%S"),
    "HPC": Form(r"\S+ \S+ \S+ \S+ (?P<at>\d+)"),
    "Hadoop": Form(r"(?P<at>\S+ \S+)", "%Y-%m-%d %H:%M:%S,%f"),
    "HealthApp": Form(r"(?P<at>\d+-\d+:\d+:\d+):", "%Y%m%d-%H:%M:%S"),
    "Linux": Form(r"(?P<at>\S+ +\d+ \S+)", "%b %d %H:%M:%S"),
    "Mac": Form(r"(?P<at>\S+ +\d+ \S+)", "%b %d %H:%M:%S"),
    "OpenSSH": Form(r"(?P<at>\S+ +\d+ \S+)", "%b %d %H:%M:%S"),
    "OpenStack": Form(r"\S+ (?P<at>\S+ \S+)", "%Y-%m-%d %H:%M:%S.%f"),
    "Proxifier": Form(r"\[(?P<at>[^]]+)\]", "%m.%d %H:%M:%S"),
    "Spark": Form(r"(?P<at>\S+ \S+)", "%y/%m/%d %H:%M:%S"),
    "Thunderbird": Form(r"\S+ (?P<at>\d+)"),
    "Windows": Form(r"(?P<at>\S+ [^,]+),", "%Y-%m-%d %H:%M:%S"),
    "Zookeeper": Form(r"(?P<at>\S+ \S+)", "%Y-%m-%d %H:%M:%S,%f"),
}

Times = Callable[[Random, int], list[datetime]]
"""Generates the times of lines, in the order of the log."""


@dataclass(frozen=True)
class Shape:
    """A synthetic log: the form of its lines, and the course of their times."""

    form: str
    line: str
    """A template with `{at}` for the time; `{n}` is the number of the line."""
    times: Times

    def lines(self, count: int = 300, seed: int = 7) -> Iterator[bytes]:
        """The log, without line ends."""
        form = FORMS[self.form].time
        for number, at in enumerate(self.times(Random(seed), count)):
            text = str(int(at.timestamp())) if form is None else at.strftime(form)
            yield self.line.format(at=text, n=number).encode()


def _start(years_ago: float) -> datetime:
    return datetime.now(UTC).replace(microsecond=0) - timedelta(days=365 * years_ago)


def _steady(years_ago: float, most: float) -> Times:
    """In order, with pauses of up to `most` seconds."""

    def times(random: Random, count: int) -> list[datetime]:
        at, found = _start(years_ago), []
        for _ in range(count):
            at += timedelta(seconds=random.uniform(0, most))
            found.append(at)
        return found

    return times


def _inverted(years_ago: float, back: float) -> Times:
    """Every tenth line is up to `back` seconds behind."""
    steady = _steady(years_ago, 8)

    def times(random: Random, count: int) -> list[datetime]:
        return [
            at - timedelta(seconds=random.uniform(0, back) if random.random() < 0.1 else 0)
            for at in steady(random, count)
        ]

    return times


def _quiet_hours(years_ago: float) -> Times:
    """Bursts with half an hour between them."""

    def times(random: Random, count: int) -> list[datetime]:
        at, found = _start(years_ago), []
        for _ in range(count):
            quiet = 30 if random.random() < 0.05 else 0
            at += timedelta(minutes=quiet, seconds=random.random())
            found.append(at)
        return found

    return times


def _wrong_year(years_ago: float) -> Times:
    """Gives a line in the middle the next year."""
    inverted = _inverted(years_ago, 2)

    def times(random: Random, count: int) -> list[datetime]:
        found = inverted(random, count)
        found[count // 2] += timedelta(days=365)
        return found

    return times


def _in_no_order(years_ago: float, days: float) -> Times:
    """At random times within `days` days."""

    def times(random: Random, count: int) -> list[datetime]:
        first = _start(years_ago)
        return [first + timedelta(days=random.uniform(0, days)) for _ in range(count)]

    return times


def _over_years(years_ago: float) -> Times:
    """In order over three years, in bursts with weeks between them; every fourth line has a random
    earlier time."""

    def times(random: Random, count: int) -> list[datetime]:
        first = at = _start(years_ago)
        found = []
        for number in range(count):
            weeks = 1_100 / (count // 10) if number % 10 == 0 else 0
            at += timedelta(days=weeks, seconds=random.random())
            back = random.uniform(0, 1) if random.random() < 0.25 else 1.0
            found.append(first + (at - first) * back)
        return found

    return times


SHAPES = (
    Shape("Access", '10.0.0.{n} - - [{at}] "GET /p{n}.html HTTP/1.1" 200 512', _inverted(9, 2)),
    Shape("Android", "{at}  1702  2395 D Manager: step {n}", _steady(0.5, 2)),
    Shape("Apache", "[{at}] [notice] worker init ok {n}", _wrong_year(21)),
    Shape("BGL", "- {at} R02-M1 RAS KERNEL INFO corrected {n}", _quiet_hours(20)),
    Shape("HDFS", "{at} 148 INFO dfs.DataNode: block blk_{n}", _steady(18, 30)),
    Shape("HPC", "{n} node-24 unix.hw state {at} 1 Component change", _in_no_order(22, 0.3)),
    Shape("HPC", "{n} node-9 boot over-years {at} 1 Linux has {n} nodes", _over_years(22)),
    Shape("Hadoop", "{at} INFO [main] App: task {n}", _steady(11, 1)),
    Shape("HealthApp", "{at}:606|Step_LSC|30002312|onStep {n}", _steady(9, 5)),
    Shape("Linux", "{at} combo sshd[{n}]: authentication failure", _quiet_hours(0.4)),
    Shape("Mac", "{at} host kernel[0]: wake {n}", _inverted(0.3, 60)),
    Shape("OpenSSH", "{at} LabSZ sshd[{n}]: Failed password for root", _steady(0.6, 20)),
    Shape("OpenStack", "nova-api.log {at} 25746 INFO wsgi [req-{n}]", _steady(9, 3)),
    Shape("Proxifier", "[{at}] chrome.exe - proxy open {n}", _in_no_order(0.5, 0.3)),
    Shape("Spark", "{at} INFO Executor: Running task {n}", _steady(9, 1)),
    Shape("Thunderbird", "- {at} dn228 crond[{n}]: session closed", _inverted(21, 1)),
    Shape("Windows", "{at}, Info  CBS  Loaded stack {n}", _quiet_hours(10)),
    Shape("Zookeeper", "{at} - INFO  [QuorumPeer:{n}] - Notification time out", _quiet_hours(11)),
)


def _parsed(text: str, form: str | None) -> int | None:
    if form is None:
        return int(text) * 1_000_000
    years = [""] if re.search("%[Yy]", form) else [f"{datetime.now(UTC).year - n} " for n in (0, 1)]
    for year in years:
        try:
            at = datetime.strptime(f"{year}{text}", f"%Y {form}" if year else form)
        except ValueError:
            continue
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        if not year or at <= datetime.now(UTC) + timedelta(days=1):
            return (at - EPOCH) // timedelta(microseconds=1)
    return None
