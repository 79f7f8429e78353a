"""The state of a store's actions, from the files alone, whether or not the application runs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from millstream.actions.letters import failed_log
from millstream.actions.record import PendingRetry, known, read_position, retry_until
from millstream.errors import StoreError
from millstream.log.reader import LogReader
from millstream.log.segments import read_end
from millstream.stores.home import log_of


class ActionState(msgspec.Struct, frozen=True):
    """The state of one action."""

    name: str
    address: str = ""
    done: int = 0
    waiting: int = 0
    """Events that are neither carried out nor given up, including dead letters that are put
    back."""
    failed: int = 0
    """Dead letters that were not put back."""
    dead_letters: int = 0
    """All dead letters that there ever were."""
    missed: int = 0
    retrying: PendingRetry | None = None
    trouble: str | None = None
    """An error of its files. The other fields are then unknown."""


def action_state(store: Path, action: str) -> ActionState:
    """Returns the state of an action. Raises StoreError if its files are damaged."""
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
    """Returns the states of all actions. If the files of one are damaged, its `trouble` says so."""
    states = []
    for name in known(store):
        try:
            states.append(action_state(store, name))
        except StoreError as error:
            states.append(ActionState(name, trouble=str(error)))
    return states


def records_of(log: Path) -> int:
    """Returns the number of records that a log has ever had."""
    end = read_end(log)
    if end is None:  # the reader finds it from the blocks, or there is no log yet
        with closing(LogReader(log)) as reader:
            end = reader.end
    return end[1]
