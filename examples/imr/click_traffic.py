"""Click logs of a site behind a load balancer, for examples/click_sessions.py.

Users come for a part of the time only, with one or more sessions each. A session has pages, a page
has a few requests, and each request goes to whichever node the load balancer picks: the clicks of a
user are on many nodes, as in the logs of the 1998 World Cup that the paper uses. Two clicks of a
session are at most 25 minutes apart, two sessions of a user at least 35. Lines are as Apache writes
them. The first and the last line of each log are a probe's: all nodes begin with the first window,
and every window that the users are in comes to its end. The same for the same seed.

    python -m examples.imr.click_traffic --out /tmp/clicks [--users 2000] [--hours 6] [--seed 7]
    python -m examples.imr.click_traffic --out /tmp/clicks --log access.log.gz

The second spreads the lines of a real access log over the nodes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path
from random import Random

from examples.click_sessions import LINE, NODES
from examples.imr.log_files import Row, lines_of, spread, write

MINUTE, HOUR = 60, 3_600
START = 10_754 * 24 * HOUR
"""The first window begins on 1999-06-12, in seconds, as all times here."""
PROBE = "10.255.255.254"

Click = tuple[int, str, str]
"""When, who, and at which node."""


@dataclass(frozen=True, slots=True)
class Clicks:
    """The users, the duration, and their behaviour."""

    users: int
    seed: int = 7
    hours: int = 6
    nodes: tuple[str, ...] = NODES
    sessions: float = 1.5
    """The mean number of sessions of a user; at least one."""
    pages: float = 5.0
    """The mean number of pages of a session; at least one."""
    pause: float = 100.0
    """Seconds between two pages, on average."""
    requests: int = 6
    """The largest number of requests of a page; the least is one."""


def clicks(given: Clicks) -> Iterator[Click]:
    """All clicks in the order of their times, the probe's first ones too, but not its last."""
    random = Random(given.seed)
    end = START + given.hours * HOUR
    of_users: list[list[Click]] = [[(START, PROBE, node) for node in given.nodes]]
    for number in range(given.users):
        user = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        of_users.append([click for click in _of_user(given, random, user) if click[0] < end])
    return merge(*of_users)


def _of_user(given: Clicks, random: Random, user: str) -> list[Click]:
    lines = []
    at = START + random.randrange(given.hours * HOUR)
    for _ in range(_some(random, given.sessions)):
        for _ in range(_some(random, given.pages)):
            for _ in range(random.randint(1, given.requests)):
                lines.append((at + random.randrange(3), user, random.choice(given.nodes)))
            at += 3 + min(int(random.expovariate(1 / given.pause)), 24 * MINUTE)
        at += 35 * MINUTE + random.randrange(2 * HOUR)
    return sorted(lines)


def _some(random: Random, mean: float) -> int:
    """Draws a number from a geometric distribution, 1 or more."""
    count = 1
    while random.random() > 1 / mean:
        count += 1
    return count


def line_of(click: Click) -> str:
    """A click as Apache writes it."""
    at, user, _ = click
    when = datetime.fromtimestamp(at, UTC).strftime("%d/%b/%Y:%H:%M:%S %z")
    return f'{user} - - [{when}] "GET /page{at % 97}.html HTTP/1.0" 200 {1_000 + at % 7_919}'


def rows(given: Clicks) -> Iterator[Row]:
    """The logs of all nodes, with the probe's last clicks, which are in a window of their own."""
    for click in clicks(given):
        yield click[2], line_of(click), record_of(line_of(click))
    for node in given.nodes:
        last = (START + (given.hours + 4) * HOUR, PROBE, node)
        yield node, line_of(last), record_of(line_of(last))


def record_of(line: str) -> dict[str, str]:
    """Returns the record that an agent makes of a line: its user and its time."""
    match = LINE.match(line)
    if match is None:
        raise ValueError(f"a line must be as Apache writes it; got {line!r}")
    return match.groupdict()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write logs for examples/click_sessions.py.")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--log", type=Path, help="a real access log to spread over the nodes")
    parser.add_argument("--users", type=int, default=2_000)
    parser.add_argument("--hours", type=int, default=6)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args(arguments)
    written: Iterator[Row] = rows(Clicks(asked.users, asked.seed, asked.hours))
    if asked.log is not None:
        given = spread(lines_of(asked.log), NODES, asked.seed)
        written = ((node, line, record_of(line)) for node, line in given)
    for node, count in write(asked.out, written).items():
        print(f"{asked.out / node}: {count} clicks")


if __name__ == "__main__":
    main()
