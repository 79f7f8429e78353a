"""The actions of a run: threads that do not wait for each other, ends, and a real kill."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from asking import Store
from receiver import HANG, Receiver

from millstream.actions.action_threads import carried_out
from millstream.actions.address import ActionAddress, parse_action_address
from millstream.actions.attempt import Policy
from millstream.actions.letters import letters
from millstream.actions.overview import action_state
from millstream.actions.record import ask_retry, read_position
from millstream.actions.worker import READER
from millstream.errors import RunError

KILLED = """
import os, signal, sys
from pathlib import Path
from millstream.actions import action_threads
from millstream.actions.attempt import Policy
from millstream.actions.address import parse_action_address
from millstream.actions.webhook import Webhook
from millstream.stores.home import Home

class Killed(Webhook):
    def carry(self, asked):
        outcome = super().carry(asked)
        if asked[0].record == 2:
            os.kill(os.getpid(), signal.SIGKILL)  # the answer is there, the record is not
        return outcome

action_threads.carrier_of = lambda address, timeout: Killed(address.target, timeout)
address = parse_action_address("webhook:" + sys.argv[2], "here")
with action_threads.carried_out(
    Home.open(Path(sys.argv[1])), {"notify": address}, policy=Policy(), timeout=5.0
) as actions:
    actions.start()
    actions.finish()
"""


def to(text: str) -> ActionAddress:
    return parse_action_address(text, "here")


def running(store: Store, addresses: Mapping[str, ActionAddress], **more: Any) -> Any:
    policy = Policy(more.pop("tries", 2))
    given = {"timeout": 5.0, "tell": store.told.append, **more}
    return carried_out(store.home, addresses, policy=policy, **given)


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_run_that_ends_carries_out_all_there_is(tmp_path: Path) -> None:
    """All requests made before `finish` are carried out or given up when it returns."""
    store = Store(tmp_path)
    with (
        Receiver([200, 404, 503]) as there,
        running(store, {"notify": to(f"webhook:{there.url}")}) as actions,
    ):
        actions.start()
        store.ask("a", "b")
        store.ask("c", "d")
        actions.finish()
    assert there.keys == ["a", "b", "c", "c", "d"]
    assert [letter.key for _, letter in letters(store.path, "notify")] == ["b"]
    seen = action_state(store.path, "notify")
    assert (seen.done, seen.waiting, seen.failed) == (3, 0, 1)
    assert seen.address == f"webhook:{there.url.removesuffix('/hook')}"


def test_a_stopped_run_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    """The run ends within a second. A later answer is not recorded, and the next run retries the
    record under the same key."""
    store, stop = Store(tmp_path), threading.Event()
    with Receiver([HANG]) as there:
        address = {"notify": to(f"webhook:{there.url}")}
        with running(store, address, stop=stop) as actions:
            actions.start()
            store.ask("a", "b")
            until(lambda: there.got)
            stop.set()
            began = time.monotonic()
        assert time.monotonic() - began < 2.0
        position = read_position(store.path, "notify")
        assert position is not None
        assert position.record == 0
        with running(store, address) as actions:
            actions.start()
            actions.finish()
        assert there.keys == ["a", "a", "b"]
        assert there.got[0] == there.got[1]


def test_a_pause_does_not_hold_a_stop(tmp_path: Path) -> None:
    """Neither a continuous run nor a run that waits for its end waits out the pause."""
    store, stop = Store(tmp_path), threading.Event()
    with Receiver([503] * 10) as there:
        with running(store, {"notify": to(f"webhook:{there.url}")}, stop=stop, tries=99) as actions:
            actions.start()
            store.ask("a")
            until(lambda: len(there.got) == 3)  # the next pause is of one second or more
            threading.Timer(0.1, stop.set).start()
            began = time.monotonic()
            actions.finish()
        assert time.monotonic() - began < 0.9


def test_actions_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """An action whose receiver hangs does not delay another action."""
    store = Store(tmp_path)
    other = Store(tmp_path, "record")
    lines = tmp_path / "lines"
    with Receiver([HANG]) as there:
        addresses = {"notify": to(f"webhook:{there.url}"), "record": to(f"line:{lines}")}
        with running(store, addresses) as actions:
            actions.start()
            store.ask("a")
            until(lambda: there.got)
            other.ask("x", "y")
            until(lambda: action_state(store.path, "record").done == 2)
            assert action_state(store.path, "notify").done == 0


def test_dead_letters_are_put_back_while_it_runs(tmp_path: Path) -> None:
    """The request of another process is seen at once."""
    store = Store(tmp_path)
    with (
        Receiver([404]) as there,
        running(store, {"notify": to(f"webhook:{there.url}")}) as actions,
    ):
        actions.start()
        store.ask("a")
        until(lambda: action_state(store.path, "notify").failed == 1)
        ask_retry(store.path, "notify", 1)
        until(lambda: action_state(store.path, "notify").done == 1)
    assert [got.id for got in there.got] == [store.id(0), store.id(0, "-r1")]


def test_trouble_with_the_store_is_told_once_and_passes(tmp_path: Path) -> None:
    """The run goes on; once the store can be written again, so does the action: no repeat."""
    store = Store(tmp_path)
    with Receiver() as there, running(store, {"notify": to(f"webhook:{there.url}")}) as actions:
        folder = store.path / "actions"
        folder.rename(store.path / "away")
        store.ask("a", "b")
        actions.start()
        until(lambda: store.told)
        assert "cannot be written" in store.told[0]
        (store.path / "away").rename(folder)
        until(lambda: action_state(store.path, "notify").done == 2)
    assert there.keys == ["a", "b"]
    assert len(store.told) == 1


def test_trouble_at_the_end_is_an_error(tmp_path: Path) -> None:
    """A run that is to end does not wait for a store that refuses: it says what is left."""
    store = Store(tmp_path)
    lines = tmp_path / "lines"
    with running(store, {"notify": to(f"line:{lines}")}) as actions:
        (store.path / "actions").rename(store.path / "away")
        store.ask("a")
        actions.start()
        with pytest.raises(RunError, match=r"cannot be written.*at the next start"):
            actions.finish()


def test_what_is_no_action_any_more_holds_nothing_back(tmp_path: Path) -> None:
    """The mark in the log goes, the position stays: made an action again, it goes on there."""
    store = Store(tmp_path)
    mark = store.home.log_of("notify") / "readers" / f"{READER}.json"
    lines = tmp_path / "lines"
    with running(store, {"notify": to(f"line:{lines}")}):
        assert mark.exists()
    with running(store, {}):
        assert not mark.exists()
    store.ask("a")
    with running(store, {"notify": to(f"line:{lines}")}) as actions:
        actions.start()
        actions.finish()
    assert len(lines.read_text().splitlines()) == 1


def test_killed_between_the_answer_and_its_record(tmp_path: Path) -> None:
    """A real process, ended with SIGKILL: at the next start that one record comes again, under the
    same key, and nothing else twice."""
    store = Store(tmp_path)
    with Receiver() as there:
        address = {"notify": to(f"webhook:{there.url}")}
        with running(store, address):
            pass  # takes its place
        store.ask("a", "b", "c", "d")
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(store.path), there.url], timeout=60
        )
        assert done.returncode == -9
        assert there.keys == ["a", "b", "c"]
        with running(store, address) as actions:
            actions.start()
            actions.finish()
    assert there.keys == ["a", "b", "c", "c", "d"]
    assert there.got[2] == there.got[3]
    assert len({got.id for got in there.got}) == 4
