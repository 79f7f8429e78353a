"""priority(): under a limit of room the least important elements go first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.in_process import InProcess
from engine.limited_room import all_rows, check_batch
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from progress_counts import by_function

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.elements.element import Configured
from millstream.engine.horizon import Lane
from millstream.stores.layout import slates_of

Clicks = list[tuple[str, int]]


@dataclass
class Worth(ms.Element):
    """Sums a user's values. Its priority is that sum, times a configured factor."""

    sign: Configured[int] = 1
    total: int = 0

    def process_event(self, event: ms.Event) -> Any:
        self.total += event.value["amount"]

    def output(self) -> Any:
        yield self.publish({"total": self.total})

    def priority(self) -> float:
        if self.key == "vip":
            return 1e9
        return self.sign * self.total


def app_of(keep: int | None, sign: int = 1, every: str | None = None) -> ms.App:
    app = ms.App("worth")
    app.source("clicks")
    app.add(
        Worth(sign), keys={"clicks": "user"}, name="worth", keep=keep, every=every, publish="totals"
    )
    return app


def events_of(given: Clicks, start: int = 0) -> list[ms.Event]:
    return [
        ms.Event("clicks", start + n, "", {"user": user, "amount": amount})
        for n, (user, amount) in enumerate(given)
    ]


def users(engine: InProcess, name: str = "worth") -> set[str]:
    prefix = slates_of(name)
    return {row[len(prefix) :].decode() for _, row in all_rows(engine) if row.startswith(prefix)}


@settings(max_examples=examples(60), deadline=None)
@given(
    batches=st.lists(
        st.lists(
            st.tuples(st.sampled_from(["a", "b", "c", "d", "vip"]), st.integers(-5, 5)), max_size=8
        ),
        max_size=5,
    ),
    keep=st.integers(1, 4),
    sign=st.sampled_from([1, -1]),
    shards=st.integers(1, 3),
    lane=st.sampled_from(["one-task", "shuffled"]),
    every=st.sampled_from([None, "4us"]),
)
def test_the_least_important_elements_go(
    batches: list[Clicks], keep: int, sign: int, shards: int, lane: Lane, every: str | None
) -> None:
    """After each batch those with the highest priority() have stayed, each with its timers."""
    engine = InProcess(app_of(keep, sign, every).checked(), shards=shards, lane=lane)
    for number, batch in enumerate(batches):
        check_batch(engine, events_of(batch, 10 * number))


def test_another_configuration_is_another_order() -> None:
    """The prototype's configuration may change between runs. The order follows at once."""
    first = InProcess(app_of(3).checked(), shards=1)
    first.batch(events_of([("a", 1), ("b", 2), ("c", 3), ("vip", 0)]))
    assert users(first) == {"b", "c", "vip"}
    second = InProcess(
        app_of(2, sign=-1).checked(), shards=1, store=first.store, progress=first.progress
    )
    second.attempts = 100
    assert check_batch(second, []) == 1
    assert users(second) == {"b", "vip"}


def test_keep_in_a_file(tmp_path: Path) -> None:
    """A standard element takes keep from the file; without priority() the last update decides."""
    file = tmp_path / "app.toml"
    file.write_text(
        '[app]\nname = "counting"\n[streams.clicks]\nsource = "json:in"\n'
        '[elements.count]\nelement = "count"\nkeys = { clicks = "user" }\nkeep = 2\n'
        'memory = "1MiB"\n'
    )
    app, _ = read_app(file)
    engine = InProcess(app.checked(), shards=1)
    engine.batch(events_of([("a", 1), ("b", 1), ("a", 1), ("c", 1)]))
    assert users(engine, "count") == {"a", "c"}
    assert by_function(engine.progress.functions, "evicted") == {"count": 1}
