"""Records and options of feeds as hypothesis makes them."""

from __future__ import annotations

from collections.abc import Iterator

from feeds.feed_runs import FeedRun, Record
from hypothesis import strategies as st

import millstream as ms

PRODUCERS = ["ann", "bob", "cid"]
CONSUMERS = ["x", "y", "z"]
KINDS = ["post"] * 5 + ["follow"] * 4 + ["view"] * 3
KINDS += ["edit", "delete", "delete", "unfollow", "block", "unblock"]
HOUR = 3_600_000_000


@st.composite
def records(draw: st.DrawFn, *, aggregates: bool = False, most: int = 60) -> list[Record]:
    """Records of all kinds, in the order of their times; but a new post may be of an earlier one.

    With `aggregates`, producers are sources of each other now and then.
    """
    kinds = [*KINDS, "aggregate", "aggregate"] if aggregates else KINDS
    at, found, posts = 1_700_000_000_000_000, list[Record](), 0
    for _ in range(draw(st.integers(5, most))):
        at += draw(st.sampled_from([1, 1_000_000, HOUR]))
        kind = draw(st.sampled_from(kinds))
        record: Record = {"kind": kind, "at": at}
        if kind in ("post", "edit", "delete"):
            record["producer"] = draw(st.sampled_from(PRODUCERS))
            is_old = kind != "post" or draw(st.integers(0, 9)) == 0
            posts += not is_old
            record["id"] = f"p{draw(st.integers(0, posts)) if is_old else posts}"
            if kind != "delete":
                record["value"] = f"{kind} {len(found)}"
            if kind == "post":
                record["ratio"] = draw(st.sampled_from([0.001, 1.0, 1_000.0]))
                if not is_old and draw(st.integers(0, 7)) == 0:
                    record["at"] -= draw(st.sampled_from([1, HOUR, 50 * HOUR]))
        elif kind == "aggregate":
            record["producer"] = draw(st.sampled_from(PRODUCERS))
            others = [one for one in PRODUCERS if one != record["producer"]]
            record["sources"] = draw(st.lists(st.sampled_from(others), unique=True))
        else:
            record["consumer"] = draw(st.sampled_from(CONSUMERS))
            if kind == "view":
                record |= {"count": draw(st.sampled_from([1, 100, 10_000])), "flow": 0.001}
            else:
                record["producer"] = draw(st.sampled_from(PRODUCERS))
        found.append(record)
    return found


OPTIONS = st.builds(
    ms.feeds.Feeds,
    coherency=st.sampled_from(["global", "per-producer"]),
    decide=st.sampled_from(["per-pair", "per-consumer"]),
    keep=st.sampled_from([2, 5, 400]),
    backfill=st.sampled_from([0, 1, 3, 50]),
    pushes=st.sampled_from([1, 2, 5_000]),
    policy=st.sampled_from(["hybrid", "hybrid", "push", "pull"]),
    ratio=st.sampled_from([0.1, 1.0, 10.0]),
    memory=st.sampled_from(["1h", "1d"]),
)


def in_batches(
    run: FeedRun, data: st.DataObject, records: list[Record]
) -> Iterator[tuple[str, list[Record]]]:
    """Runs records in batches of any size; after each gives a consumer, and the records left."""
    left = list(records)
    while left:
        size = data.draw(st.integers(1, len(left)))
        run.batch(left[:size])
        left = left[size:]
        yield data.draw(st.sampled_from(CONSUMERS)), left
