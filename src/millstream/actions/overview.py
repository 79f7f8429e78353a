"""How the actions of a store are: from the files alone, whether or not the application runs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from millstream.actions.letters import failed_log
from millstream.actions.record import Trying, known, read_position, retry_until
from millstream.errors import StoreError
from millstream.log.reader import LogReader
from millstream.log.segments import read_end
from millstream.stores.home import log_of


class ActionState(msgspec.Struct, frozen=True):
    """How one action is."""

    name: str
    address: str = ""
    done: int = 0
    waiting: int = 0
    """Asked for, and neither carried out nor given up; the dead letters that are put back too."""
    failed: int = 0
    """Dead letters that were not put back."""
    dead_letters: int = 0
    """Dead letters of all time."""
    missed: int = 0
    retrying: Trying | None = None
    trouble: str | None = None
    """What is wrong with its files; the rest is then not known."""


def action_state(store: Path, action: str) -> ActionState:
    """How an action of the store is; StoreError if its files are damaged."""
    at = read_position(store, action)
    if at is None:
        raise StoreError(f"{store}: it has no action {action!r}")
    until = max(at.retried, retry_until(store, action))
    return ActionState(
        action,
        at.address,
        at.done,
        max(0, records_of(log_of(store, action)) - at.record) + until - at.retried,
        max(0, records_of(failed_log(store, action)) - until),
        at.failed,
        at.missed,
        at.trying,
    )


def action_states(store: Path) -> list[ActionState]:
    """All of them; one whose files are damaged says so."""
    found = []
    for name in known(store):
        try:
            found.append(action_state(store, name))
        except StoreError as error:
            found.append(ActionState(name, trouble=str(error)))
    return found


def records_of(log: Path) -> int:
    """How many records a log has had."""
    end = read_end(log)
    if end is None:  # it is found from the blocks; or there is no log yet
        with closing(LogReader(log)) as reader:
            end = reader.end
    return end[1]
