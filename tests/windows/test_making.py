"""Records become panes at a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import millstream as ms
from millstream.windows import Job
from millstream.windows.panes.pane_maker import Maker, Making


def some(record: Any) -> Iterator[tuple[str, int]]:
    """Pairs until one is missing."""
    for word in record:
        if word is None:
            raise ValueError("no word")
        yield word, 1


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("combine", [ms.algebra.sum(), None], ids=["sum", "kept"])
def test_a_record_that_map_fails_on_is_in_no_pane(live: bool, combine: Any) -> None:
    """Not even with the pairs that it gave before it failed."""
    job = Job(map=some, combine=combine, by="records", range=10)
    maker, making = Maker(job, "web1", live=live), Making()
    assert list(maker.take(making, ["a", "b", "a"], 0, 3)) == []
    with pytest.raises(ValueError, match="no word"):
        list(maker.take(making, ["a", "c", None], 1, 3))
    maker.dead(making, 3)
    (message,) = maker.end(making, 1)
    told = message.nodes["web1"]
    assert (told.records, told.dead, told.total) == (1, 1, 2)
    assert message.partials.keys() == {"a", "b"}
    read = job.merging.read
    values = {key: job.answer(key, read(value)) for key, value in message.partials.items()}
    assert values == (
        {"a": [1, 1], "b": [1]} if combine is None else {"a": {"sum": 2}, "b": {"sum": 1}}
    )
