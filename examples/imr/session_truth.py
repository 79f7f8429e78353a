"""The expected result of examples/click_sessions.py, and its errors on incomplete data (iMR, Figure
11).

- *Error per user*: |found - true| / true of the number of a user's sessions, the mean over the
  users that were found; for the length of sessions and the clicks in them likewise.
- *Users found*: the part of the users that were found at all (Figure 11(b)).
- *Total error*: |found - true| / true of the number of sessions of all users. A user that was not
  found is missing in it.

The paper does not say whether a user that was not found counts in the error per user. Here it does
not, since users found are told by themselves; `per_user_of_all` counts it as off by 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from examples.imr.incomplete import Cell, Panes, answers
from millstream.windows.job import Job

GAP = 30 * 60
WINDOW = 2 * 3_600

Session = list[int]
"""The times of its clicks, in seconds."""


@dataclass(frozen=True, slots=True)
class SessionErrors:
    """The errors of a window."""

    per_user: float
    per_user_of_all: float
    duration: float
    """The error of the mean length of a user's sessions, over the users found; only lengths over
    0."""
    clicks: float
    """The error of the mean number of clicks in a user's sessions, over the users found."""
    total: float
    users_found: float
    """The part of the users that were found."""


def true_sessions(clicks: Iterable[tuple[int, str]]) -> dict[int, dict[str, list[Session]]]:
    """By the beginning of the window and the user: the sessions, from all clicks sorted."""
    times: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at, user in clicks:
        times[at // WINDOW * WINDOW][user].append(at)
    return {
        window: {user: cut(sorted(of_user)) for user, of_user in users.items()}
        for window, users in times.items()
    }


def cut(times: list[int]) -> list[Session]:
    """A user's clicks, in order, cut where there was none for half an hour."""
    sessions = [[times[0]]]
    for at in times[1:]:
        if at - sessions[-1][-1] > GAP:
            sessions.append([])
        sessions[-1].append(at)
    return sessions


def errors(true: Mapping[str, Any], answered: Mapping[str, Any]) -> SessionErrors:
    """The errors of what was found: answers of the job, by user."""
    seen = [user for user in true if user in answered]
    of_sessions = [_off(true[user], answered[user], "sessions") for user in seen]
    lasting = [user for user in seen if true[user]["duration"] > 0]
    total_true, total_found = (
        sum(answer["sessions"] for answer in answers.values()) for answers in (true, answered)
    )
    return SessionErrors(
        per_user=_mean(of_sessions),
        per_user_of_all=(sum(of_sessions) + len(true) - len(seen)) / len(true),
        duration=_mean([_off(true[user], answered[user], "duration") for user in lasting]),
        clicks=_mean([_off(true[user], answered[user], "clicks") for user in seen]),
        total=abs(total_found - total_true) / total_true,
        users_found=len(seen) / len(true),
    )


def measure(
    job: Job, panes: Panes, all_cells: Collection[Cell], received: Collection[Cell]
) -> SessionErrors:
    """The errors of a window of `all_cells` of which only some were received."""
    return errors(answers(job, panes, all_cells), answers(job, panes, received))


def _off(true: Mapping[str, float], answered: Mapping[str, float], name: str) -> float:
    return abs(answered[name] - true[name]) / true[name]


def _mean(values: list[float]) -> float:
    return fmean(values) if values else 0.0
