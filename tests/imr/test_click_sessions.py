"""Sessions from the clicks of several servers: against a plain definition, and with less."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from examples.click_sessions import LOGS, NODES, about, application, click_sessions, joined, moment
from examples.imr import click_traffic
from examples.imr.click_traffic import PROBE, START, Click, Clicks, clicks, line_of, record_of, rows
from examples.imr.incomplete import drawn, messages_of, panes_of, spatial, whole
from examples.imr.session_truth import (
    GAP,
    SessionErrors,
    cut,
    errors,
    measure,
    true_sessions,
)

JOB = click_sessions()
MINUTE, WINDOW = 60, 2 * 3_600


def records_of(given: Clicks) -> dict[str, list[dict[str, str]]]:
    logs: dict[str, list[dict[str, str]]] = defaultdict(list)
    for node, _, record in rows(given):
        logs[node].append(record)
    return logs


def check(run: ms.testing.Run, made: list[Click]) -> None:
    """Every user and window has the sessions that all of its clicks, sorted, say."""
    assert run.dead_letters == []
    true = true_sessions((at, user) for at, user, _ in made)
    told = run.stream("sessions")
    assert {one.value["from"] for one in told} == {window * 1_000_000 for window in true}
    for window, users in true.items():
        found = {one.key: one.value for one in told if one.value["from"] == window * 1_000_000}
        assert found.keys() == users.keys()
        for user, sessions in users.items():
            seconds = sum(times[-1] - times[0] for times in sessions)
            assert found[user]["value"] == {
                "sessions": len(sessions),
                "duration": pytest.approx(seconds / len(sessions)),
                "clicks": pytest.approx(sum(map(len, sessions)) / len(sessions)),
            }
        everything = [times for sessions in users.values() for times in sessions]
        (total,) = [
            one.value for one in run.stream("totals") if one.value["from"] == window * 1_000_000
        ]
        assert (total["users"], total["sessions"]) == (len(users), len(everything))
        assert total["clicks"] == pytest.approx(sum(map(len, everything)) / len(everything))
        assert total["duration"] == pytest.approx(
            sum(times[-1] - times[0] for times in everything) / len(everything)
        )
        assert total["coverage"]["area"] == 1
    assert run.slates("totals") == {}


@pytest.mark.parametrize("reducers", [1, 2])
def test_every_window_has_the_sessions_of_its_users(reducers: int) -> None:
    """From files, with one reducer or several."""
    traffic = Clicks(40, hours=4)
    app = application("sessions", click_sessions(reducers=reducers))
    check(ms.testing.run(app, records_of(traffic)), list(clicks(traffic)))


def test_agents_give_the_same() -> None:
    """The messages of agents give the same answers in the application for agents."""
    traffic = Clicks(40, hours=4)
    logs = {
        node: [(one, int(moment(one).timestamp()) * 1_000_000) for one in log]
        for node, log in records_of(traffic).items()
    }
    messages = [one for node in NODES for one in messages_of(JOB, node, logs[node])]
    app = application("sessions", JOB, logs=LOGS)
    check(ms.testing.run(app, {"sessions.panes": messages}), list(clicks(traffic)))


@given(
    st.lists(st.tuples(st.integers(0, 7_200), st.integers(0, 5)), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_sessions_are_joined_in_any_order(given: list[tuple[int, int]], random: Random) -> None:
    """However clicks lie in panes, and in whichever order and tree panes are combined, the result
    equals that of all clicks, sorted."""
    panes: dict[int, list[list[int]]] = {}
    for at, pane in given:
        one = [[at, at, 1]]
        panes[pane] = joined(panes[pane], one) if pane in panes else one
    left = list(panes.values())
    while len(left) > 1:
        random.shuffle(left)
        left.append(joined(left.pop(), left.pop()))
    sessions = cut(sorted(at for at, _ in given))
    assert left[0] == [[times[0], times[-1], len(times)] for times in sessions]


def test_a_session_ends_after_half_an_hour() -> None:
    """A click half an hour later goes on with it, a second after that begins a new one."""
    first, later, too_late = ([[at, at, 1]] for at in (0, GAP, 2 * GAP + 1))
    assert joined(joined(first, too_late), later) == [[0, GAP, 2], [2 * GAP + 1, 2 * GAP + 1, 1]]
    assert about("ann", [[[0, 60, 3], [4_000, 4_000, 1]]]) == {
        "sessions": 2,
        "duration": 30,
        "clicks": 2,
    }


def test_the_traffic_has_the_sessions_that_it_says() -> None:
    """No gap between 25 and 35 minutes, and the clicks of most users are on several nodes."""
    by_user: dict[str, list[Click]] = defaultdict(list)
    for click in clicks(Clicks(100)):
        by_user[click[1]].append(click)
    for of_user in by_user.values():
        times = [at for at, _, _ in of_user]
        assert times == sorted(times)
        assert not any(
            25 * MINUTE < after - before < 35 * MINUTE for before, after in pairwise(times)
        )
    many = [user for user, made in by_user.items() if len({node for *_, node in made}) > 1]
    assert len(many) > 0.8 * len(by_user)


def in_part(part: float, users: int = 300) -> dict[str, SessionErrors]:
    """The errors of ten nodes, over the middle window."""
    traffic = Clicks(users, nodes=tuple(f"n{n}" for n in range(10)), hours=6)
    logs: dict[str, list[tuple[Any, int]]] = defaultdict(list)
    for click in clicks(traffic):
        logs[click[2]].append((record_of(line_of(click)), click[0] * 1_000_000))
    made = panes_of(JOB, logs)
    first = (START + WINDOW) // (6 * MINUTE)
    panes = range(first, first + 20)
    every = whole(traffic.nodes, panes)
    return {
        "drawn": measure(JOB, made, every, drawn(traffic.nodes, panes, part, 5)),
        "spatial": measure(JOB, made, every, spatial(traffic.nodes, panes, part)),
    }


def test_half_of_the_panes_drawn_find_most_sessions() -> None:
    """Figure 11: per user under 20% off, in total under 5%; the first half of the panes of all
    nodes misses the users that came later."""
    found = in_part(0.5)
    assert found["drawn"].per_user < 0.20
    assert found["drawn"].total < 0.05
    assert found["spatial"].total > 2 * found["drawn"].total
    assert found["spatial"].users_found < found["drawn"].users_found


def test_errors_are_as_defined() -> None:
    """There are errors over the users found, over all users, and in total. All are zero if nothing
    is missing."""
    true = {
        "a": {"sessions": 2, "duration": 60, "clicks": 4},
        "b": {"sessions": 1, "duration": 0, "clicks": 2},
    }
    found = {"a": {"sessions": 1, "duration": 30, "clicks": 3}}
    assert errors(true, found) == SessionErrors(
        per_user=0.5,
        per_user_of_all=0.75,
        duration=0.5,
        clicks=0.25,
        total=pytest.approx(2 / 3),
        users_found=0.5,
    )
    assert errors(true, true) == SessionErrors(0, 0, 0, 0, 0, 1)


def test_the_script_writes_logs_of_its_own_and_of_a_real_one(tmp_path: Path) -> None:
    """Lines for agents and the same as records for Spark; each line of a real log once."""
    click_traffic.main(["--out", str(tmp_path / "made"), "--users", "20", "--hours", "2"])
    real = tmp_path / "access.log"
    lines = [
        f'192.0.2.{n} - - [17/May/2015:10:05:{n:02d} +0000] "GET /x HTTP/1.1" 200 - "-" "Mozilla"'
        for n in range(30)
    ]
    real.write_text("\n".join(lines) + "\n")
    click_traffic.main(["--out", str(tmp_path / "real"), "--log", str(real)])
    text = [(tmp_path / "real" / f"{node}.log").read_text().splitlines() for node in NODES]
    assert sorted(line for log in text for line in log) == sorted(lines)
    assert record_of(lines[7]) == {"user": "192.0.2.7", "time": "17/May/2015:10:05:07 +0000"}
    for node in NODES:
        made = (tmp_path / "made" / f"{node}.log").read_text().splitlines()
        assert len(made) == len((tmp_path / "made" / node / "1.jsonl").read_text().splitlines())
        assert record_of(made[0])["user"] == record_of(made[-1])["user"] == PROBE
