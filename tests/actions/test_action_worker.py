"""An action, step by step, over a real store: order, attempts, dead letters, and crashes in
between."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from asking import STARTED, Died, Store, Told, drain
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.actions.attempt import AttemptOutcome
from millstream.actions.letters import letters
from millstream.actions.overview import action_state
from millstream.actions.record import ask_retry, read_position
from millstream.errors import StoreError
from millstream.log.readers import least_committed
from millstream.log.retention import Retention

AGAIN, NEVER = AttemptOutcome("again", "HTTP 503"), AttemptOutcome("never", "HTTP 404")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_all_are_carried_out_in_order(store: Store) -> None:
    """Over batches and blocks, each record once, in the order of the log, under its own id."""
    carrier = Told()
    worker = store.worker(carrier)
    assert worker.step() is None
    store.ask("a", "b")
    store.ask("c")
    drain(store, worker)
    store.ask("d")
    drain(store, worker)
    assert carrier.keys == ["a", "b", "c", "d"]
    assert [one.id for one in carrier.carried] == [store.id(n) for n in range(4)]
    assert worker.position.done == 4


def test_what_is_sent_is_the_event(store: Store) -> None:
    """Action, id, key, time and value; of bytes, their base64."""
    carrier = Told()
    worker = store.worker(carrier)
    store.ask("ann", value={"n": 2**70, "x": [1.5, None]})
    store.ask("bob", value=b"\x00\xff")
    drain(store, worker)
    first, second = (json.loads(one.json()) for one in carrier.carried)
    assert first == {
        "action": "notify", "id": store.id(0), "key": "ann", "ts": 0,
        "value": {"n": 2**70, "x": [1.5, None]},
    }  # fmt: skip
    assert second["bytes"] == "AP8="
    assert "value" not in second


def test_a_restart_goes_on_where_it_was(store: Store) -> None:
    """Nothing that was recorded is carried out again, and nothing is left out."""
    first = Told()
    worker = store.worker(first)
    store.ask("a", "b", "c")
    worker.step()
    worker.step()
    worker.close()
    second = Told()
    drain(store, store.worker(second))
    assert (first.keys, second.keys) == (["a", "b"], ["c"])


def test_dying_before_the_record_repeats_under_the_same_id(store: Store) -> None:
    """The receiver has answered, the position is not written: that one comes again, no other."""
    first = Told(AttemptOutcome("done"), Died())
    worker = store.worker(first)
    store.ask("a", "b", "c")
    with pytest.raises(Died):
        drain(store, worker)
    worker.close()
    second = Told()
    drain(store, store.worker(second))
    assert second.keys == ["b", "c"]
    assert first.carried[1].id == second.carried[0].id == store.id(1)
    assert first.carried[1].json() == second.carried[0].json()


def test_a_failure_is_tried_again_before_the_next(store: Store) -> None:
    """Order holds: the next record waits, with doubling pauses."""
    carrier = Told(AGAIN, AGAIN)
    worker = store.worker(carrier)
    store.ask("a", "b")
    assert drain(store, worker) == [0.5, 1.0]
    assert carrier.keys == ["a", "a", "a", "b"]
    assert len({one.id for one in carrier.carried}) == 2


def test_what_is_being_tried_can_be_seen_and_counts_over_restarts(store: Store) -> None:
    """The record says error, tries and since when; a restart does not begin the tries anew."""
    worker = store.worker(Told(AGAIN))
    store.ask("a", "b")
    assert worker.step() == 0.5
    worker.close()
    seen = action_state(store.path, "notify")
    assert (seen.done, seen.waiting, seen.failed) == (0, 2, 0)
    assert seen.retrying is not None
    assert (seen.retrying.error, seen.retrying.tries) == ("HTTP 503", 1)
    assert seen.retrying.since == STARTED
    drain(store, store.worker(Told(AGAIN, AGAIN)))
    ((_, letter),) = letters(store.path, "notify")
    assert (letter.key, letter.tries, letter.since) == ("a", 3, STARTED)


def test_a_dead_letter_after_so_many_tries(store: Store) -> None:
    """The letter has the event, the error, the tries and the times; the next record is not held."""
    carrier = Told(AGAIN, AGAIN, AGAIN)
    worker = store.worker(carrier)
    store.ask("a", "b", value={"n": 1})
    drain(store, worker)
    assert carrier.keys == ["a", "a", "a", "b"]
    ((number, letter),) = letters(store.path, "notify")
    assert (number, letter.key, letter.ts, letter.record) == (0, "a", 0, 0)
    assert bytes(letter.value) == b'{"n":1}'  # type: ignore[arg-type]
    assert letter.error == "HTTP 503 (given up after 3 tries)"
    assert (letter.tries, letter.since, letter.last) == (3, STARTED, STARTED + 1_500_000)
    assert (worker.position.done, worker.position.failed) == (1, 1)
    assert [line for line in store.told if "key 'a' is a dead letter, number 1" in line]


def test_a_refusal_is_a_dead_letter_at_once(store: Store) -> None:
    """There is no second attempt, and no pause."""
    carrier = Told(NEVER)
    worker = store.worker(carrier)
    store.ask("a", "b")
    assert drain(store, worker) == []
    assert carrier.keys == ["a", "b"]
    assert [letter.error for _, letter in letters(store.path, "notify")] == ["HTTP 404"]


def test_patience_ends_it_too(store: Store) -> None:
    """A receiver that asks for more time than there is, is not waited for."""
    worker = store.worker(Told(AttemptOutcome("again", "HTTP 429", after=100.0)), patience=60.0)
    store.ask("a")
    assert drain(store, worker) == []
    ((_, letter),) = letters(store.path, "notify")
    assert "after more than 60 s" in letter.error


def test_dying_between_a_letter_and_its_record_makes_one_letter(store: Store) -> None:
    """The letter is on disk, the position is not past it: it is neither tried nor told again."""
    carrier = Told(NEVER)
    worker = store.worker(carrier)
    store.ask("a", "b")
    position = (store.path / "actions" / "notify").read_bytes()
    worker.step()
    worker.close()
    (store.path / "actions" / "notify").write_bytes(position)
    second = Told()
    again = store.worker(second)
    drain(store, again)
    assert second.keys == ["b"]
    assert len(list(letters(store.path, "notify"))) == 1
    assert (again.position.done, again.position.failed) == (1, 1)


def test_dead_letters_that_are_put_back(store: Store) -> None:
    """Dead letters that are put back are carried out again under new ids. One that fails again is a
    dead letter again, and can be put back again."""
    worker = store.worker(Told(NEVER, NEVER))
    store.ask("a", "b", "c")
    drain(store, worker)
    assert action_state(store.path, "notify").failed == 2
    ask_retry(store.path, "notify", 2)
    seen = action_state(store.path, "notify")
    assert (seen.waiting, seen.failed) == (2, 0)
    worker.close()
    carrier = Told(NEVER)
    worker = store.worker(carrier)
    store.ask("d")
    drain(store, worker)
    assert carrier.keys == ["a", "b", "d"]
    assert [one.id for one in carrier.carried] == [
        store.id(0, "-r1"), store.id(1, "-r1"), store.id(3),
    ]  # fmt: skip
    seen = action_state(store.path, "notify")
    assert (seen.done, seen.waiting, seen.failed, seen.dead_letters) == (3, 0, 1, 3)
    ask_retry(store.path, "notify", 3)
    drain(store, worker)
    assert carrier.carried[-1].id == store.id(0, "-r2")
    assert action_state(store.path, "notify").failed == 0


def test_what_was_there_before_it_was_an_action_is_left(store: Store) -> None:
    """A stream that becomes an action does not do its past; this is said."""
    store.ask("old", "older")
    carrier = Told()
    worker = store.worker(carrier)
    store.ask("new")
    drain(store, worker)
    assert carrier.keys == ["new"]
    assert store.told == ["2 records from before it was an action are not carried out"]


def test_retention_waits_for_the_worker(store: Store) -> None:
    """Events that were not carried out stay in the log, however old. The mark follows the
    position."""
    keep = Retention(0, 0)
    worker = store.worker(Told(AGAIN))
    for key in "abc":
        store.ask(key, value="x" * 70_000, retention=keep)
    assert worker.step() == 0.5
    log = store.home.log_of("notify")
    assert least_committed(log) == 0
    assert len(list(log.glob("*.log"))) == 3
    drain(store, worker)
    store.ask("d", value="x" * 70_000, retention=keep)
    assert len(list(log.glob("*.log"))) <= 2
    drain(store, worker)
    assert worker.position.done == 4


def test_records_that_are_gone_are_counted(store: Store) -> None:
    """If retention removed them while no mark held them, the worker continues, and reports their
    number."""
    worker = store.worker(Told())
    worker.close()
    shutil.rmtree(store.home.log_of("notify") / "readers")
    for key in "abc":
        store.ask(key, value="x" * 70_000, retention=Retention(0, 0))
    carrier = Told()
    worker = store.worker(carrier)
    drain(store, worker)
    assert carrier.keys == ["c"]
    assert worker.position.missed == 2
    assert "2 records are gone from its log, and are not carried out" in store.told


def test_a_disk_that_refuses_the_record_does_not_make_a_repeat(store: Store) -> None:
    """The process remembers the result while it lives, and records it as soon as the disk accepts
    it."""
    carrier = Told()
    worker = store.worker(carrier)
    store.ask("a", "b")
    folder = store.path / "actions"
    folder.rename(store.path / "away")
    store.clock.seconds += 1.0  # long enough that the position is to be on disk
    with pytest.raises(StoreError, match="cannot be written"):
        worker.step()
    with pytest.raises(StoreError):
        worker.step()
    (store.path / "away").rename(folder)
    drain(store, worker)
    assert carrier.keys == ["a", "b"]
    position = read_position(store.path, "notify")
    assert position is not None
    assert position.record == 2


def test_a_damaged_record_is_named(store: Store) -> None:
    """Any byte of it flipped is found, and the message says what to do."""
    store.worker(Told()).close()
    path = store.path / "actions" / "notify"
    content = path.read_bytes()
    for place in range(len(content) - 1):  # all but the end of its line
        flipped = content[place] ^ (1 << place % 8)
        path.write_bytes(content[:place] + bytes([flipped]) + content[place + 1 :])
        with pytest.raises(StoreError, match=r"actions/notify: .*is damaged.*delete it"):
            read_position(store.path, "notify")


@pytest.mark.parametrize("left", [None, b"", b"\x00" * 40, b"00000000 {}\n"])
def test_a_power_cut_repeats_what_was_not_yet_on_disk(store: Store, left: bytes | None) -> None:
    """Without a valid note, everything since the last sync is carried out again under the same ids.
    With it nothing is, as after a kill."""
    first = Told()
    worker = store.worker(first)
    store.ask("a", "b", "c", "d")
    worker.step()
    store.clock.seconds += 1.0
    worker.step()  # this one is on disk
    worker.step()
    worker.close()
    if left is not None:
        (store.path / "actions" / ".notify.now").write_bytes(left)
    second = Told()
    again = store.worker(second)
    drain(store, again)
    assert second.keys == (["d"] if left is None else ["c", "d"])
    assert second.carried[0].id == store.id(3 if left is None else 2)
    assert again.position.done == 4


def test_an_orderly_end_leaves_the_position_on_disk(store: Store) -> None:
    """Neither idleness nor the end of a run leaves it in the note alone."""
    worker = store.worker(Told())
    store.ask("a", "b")
    worker.step()
    worker.abandon()
    worker.close()
    (store.path / "actions" / ".notify.now").unlink()
    worker = store.worker(Told())
    assert worker.position.record == 1
    drain(store, worker)
    worker.close()
    (store.path / "actions" / ".notify.now").unlink()
    position = read_position(store.path, "notify")
    assert position is not None
    assert position.record == 2


def test_a_replaced_log_is_found(store: Store) -> None:
    """A log that is shorter than the worker's position is an error that says so."""
    worker = store.worker(Told())
    store.ask("a", "b")
    drain(store, worker)
    worker.close()
    shutil.rmtree(store.home.log_of("notify"))
    with pytest.raises(StoreError, match="was the log replaced"):
        store.worker(Told()).step()


def test_an_abandoned_try_records_nothing(store: Store) -> None:
    """The result of an attempt that ends after its run is not recorded: the next start repeats the
    attempt."""

    class Slow(Told):
        def carry(self, asked):
            worker.abandon()
            return super().carry(asked)

    carrier = Slow()
    worker = store.worker(carrier)
    store.ask("a")
    assert worker.step() is None
    position = read_position(store.path, "notify")
    assert position is not None
    assert (position.record, position.done) == (0, 0)


@settings(max_examples=examples(50))
@given(
    st.lists(st.integers(1, 5), max_size=5),
    st.lists(st.sampled_from(["done", "again", "never", "die"]), max_size=30),
    st.integers(1, 4),
)
def test_each_is_settled_once_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, batches: list[int], fates: list[str], group: int
) -> None:
    """Over any failures and deaths: every record is done or a dead letter, once; tries are in
    order; and only what was under way at a death is tried again under its id after it was done."""
    store = Store(tmp_path_factory.mktemp("fates"))
    outcomes = {"done": AttemptOutcome("done"), "again": AGAIN, "never": NEVER, "die": Died()}
    carrier = Told(*(outcomes[fate] for fate in fates), group=group)
    worker = store.worker(carrier)
    asked = [str(n) for n in range(sum(batches))]
    left = list(asked)
    for count in batches:
        store.ask(*left[:count])
        del left[:count]
    while True:
        try:
            drain(store, worker)
            break
        except Died:
            worker.close()
            worker = store.worker(carrier)
    dead = [letter.key for _, letter in letters(store.path, "notify")]
    assert len(dead) == len(set(dead))
    assert worker.position.done + worker.position.failed == len(asked)
    assert worker.position.failed == len(dead)
    firsts = list(dict.fromkeys(one.record for one in carrier.carried))
    assert firsts == sorted(firsts)
    assert set(carrier.keys) == set(asked)
    assert all(one.id == store.id(one.record) for one in carrier.carried)
