"""Records on which a job's functions fail are set aside, however they fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import millstream as ms
from millstream.agent.panes.dead_letters import words_of
from millstream.agent.panes.pane_combiner import combiner
from millstream.windows import Job


class Mute(Exception):
    """An error whose message cannot be had."""

    def __str__(self) -> str:
        raise AttributeError("response")


FAILURES = (SystemExit(3), ValueError("half a pair: \ud800"), Mute())
WORDS = (
    "SystemExit: 3",
    r"ValueError: half a pair: \ud800",
    "Mute, whose message cannot be shown",
)


@pytest.mark.parametrize(
    "combine",
    [None, ms.algebra.count(), ms.algebra.sum(), lambda a, b: a + b],
    ids=["kept", "counted", "merged", "combined"],
)
def test_a_record_is_set_aside_with_its_error(combine: Any) -> None:
    """One that would end the agent too. The records around it are in the pane."""

    def pairs(record: int) -> Iterator[tuple[str, int]]:
        yield "k", 1
        if record >= 0:
            raise FAILURES[record]

    partials: dict[str, Any] = {}
    failed = combiner(Job(map=pairs, combine=combine, range=10, by="records"))(
        partials, [-1, 0, 1, 2, -1]
    )
    assert [(index, words_of(error)) for index, error in failed] == [*enumerate(WORDS, 1)]
    assert list(partials) == ["k"]
