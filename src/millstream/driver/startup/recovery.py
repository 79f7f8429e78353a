"""Checks that a start can recover the store that it finds, before anything is changed.

A batch that was not committed never happened: a start undoes, in every shard, what came after the
batch in `progress`, and plans afresh from there. A shard remembers one batch back, so one batch can
be undone and no more. All shards are checked first. If a shard is missing, has lost a commit, or
holds more than one batch beyond the record, then files of the store do not belong together. In that
case nothing is changed, and the error says what to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.driver.startup.format_upgrade import has_committed
from millstream.errors import StoreError
from millstream.stores.contract import ShardState
from millstream.stores.environment import REPAIR
from millstream.stores.home import Home, opened
from millstream.stores.progress import Progress, decoded
from millstream.stores.soft import FLUSHED, SOFT, Flushed, read_flushed

OLDER = (
    "the file is older than the store: put back the one that belongs to it (restore the whole "
    "store from a copy), or begin a new store with --store and replay the sources; nothing was "
    "changed"
)
GONE = (
    "restore the file, or the whole store from a copy, or begin a new store with --store and "
    "replay the sources; nothing was changed"
)


def check_shards(progress: Progress, states: Sequence[ShardState | None]) -> tuple[int, str] | None:
    """Returns the first shard that does not fit `progress`, and what is wrong; None if all fit."""
    for number, state in enumerate(states):
        last = _known(progress.last_batches, number)
        if state is None:
            if progress.batch >= 0:
                return number, f"the shard is missing; {REPAIR}"
        elif state.last < last:
            return number, (
                f"it was changed in batch {last}, and knows of {state.last} as its last: its "
                f"data.mdb is damaged or an older one; {REPAIR}"
            )
        elif state.last > progress.batch + 1:
            return number, _ahead("progress", progress.batch, state.last)
    return None


def check_layer(
    progress: Progress, flushed: Flushed, states: Sequence[ShardState | None]
) -> tuple[int, str] | None:
    """Does the same as `check_shards` for a store with a layer of batches that are not flushed."""
    done = flushed.progress.batch
    for number, state in enumerate(states):
        last, base = _known(progress.last_batches, number), _known(flushed.base_batches, number)
        if state is None:
            if done >= 0:
                return number, f"the shard is missing; {REPAIR}"
        elif state.base < base:
            return number, (
                f"a flush changed it in batch {base}, and it knows of {state.base} as its last: "
                f"its data.mdb is damaged or an older one; {REPAIR}"
            )
        elif state.last < last:
            return number, (
                f"its layer was changed in batch {last}, and knows of {state.last} as its last: "
                f"files of the layer are missing or older ones; {REPAIR}"
            )
        elif state.last > max(progress.batch, done) + 1:
            return number, _ahead("progress", progress.batch, state.last)
        elif state.flushed > done or state.base > done + 1:
            return number, _ahead(FLUSHED, done, max(state.flushed, state.base))
    return None


def check_recoverable(home: Home) -> None:
    """Raises StoreError if the store cannot be brought back to its last committed batch."""
    soft = home.soft
    if soft is not None and not (home.path / FLUSHED).exists():
        raise StoreError(
            f"{home.path / FLUSHED}: is missing, and without it nobody knows which batch was "
            f"flushed last; {GONE}"
        )
    alive = soft if soft is not None and soft.survives() else None
    store = opened(home.path, home.facts.shards, alive)
    try:
        states = [store.shard(number).state() for number in range(store.shards)]
    finally:
        store.close()
    home.at_least_epoch(max((state.seen.epoch for state in states if state), default=0))
    if soft is None:
        wrong = check_shards(_recorded(home), states)
    elif alive is None:  # the layer is discarded, together with its progress
        wrong = check_shards(_of_base(read_flushed(home.path)), states)
    else:
        flushed = read_flushed(home.path)
        wrong = check_layer(_recorded(home), flushed, states)
        _check_staged(home, flushed.progress.batch)
    if wrong is not None:
        number, sentence = wrong
        raise StoreError(f"{home.shards / f'shard-{number:04d}'}: {sentence}")


def _recorded(home: Home) -> Progress:
    """Reads the progress, which must exist and must belong to the store's layer."""
    data, soft = home.read_progress(), home.soft
    if data is None and (home.facts.format > 2 or has_committed(home.path)):
        raise StoreError(
            f"{home.path / 'progress'}: is missing, and without it nobody knows which batch the "
            f"slates are of; {GONE}"
        )
    progress = decoded(data)
    if soft is None:
        if progress.soft:
            raise StoreError(
                f"{home.path / SOFT}: is missing, and batches up to {progress.batch} may lie in "
                f"the layer that it names; {GONE}"
            )
        return progress
    flushed = read_flushed(home.path).progress
    # While a layer is being created or removed, the progress names none, and everything is flushed.
    if progress.soft != soft.id and (progress.soft or progress.batch != flushed.batch):
        raise StoreError(
            f"{home.path / 'progress'}: its batches lie in layer {progress.soft or 'none'}, and "
            f"{SOFT} names {soft.id}: one of the files does not belong to the store; {GONE}"
        )
    if home.facts.format == 2:
        progress.last_batches = []  # in format 2 they described the shards below the layer
    return progress


def _check_staged(home: Home, flushed: int) -> None:
    """Checks that the output of batches that are not flushed is there: it is not published yet."""
    progress = decoded(home.read_progress())
    for batch, names in progress.unpublished if progress.batch > flushed else ():
        for name in names:
            if not (home.staging / name).exists():
                raise StoreError(
                    f"{home.staging / name}: is missing, and the output of batch {batch} in it "
                    f"was not published; {GONE}"
                )


def _of_base(flushed: Flushed) -> Progress:
    return Progress(batch=flushed.progress.batch, last_batches=flushed.base_batches)


def _known(batches: Sequence[int], number: int) -> int:
    return batches[number] if number < len(batches) else -1


def _ahead(file: str, recorded: int, held: int) -> str:
    return (
        f"it holds batch {held}, and the store's record `{file}` knows of batch {recorded} as "
        f"the last: {OLDER}"
    )
