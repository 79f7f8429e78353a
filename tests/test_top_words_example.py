"""The first application of S4 (Figure 1), a TOML file with no code, against collections.Counter."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from engine.in_process import InProcess
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.app_file.app_file import read_app

EXAMPLES = Path(__file__).parent.parent / "examples"
WORD = re.compile(r"\w+(?:'\w+)*")


def quotes() -> list[dict[str, str]]:
    text = (EXAMPLES / "data" / "quotes" / "1.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def top_words(records: list[dict[str, str]]) -> list[list[Any]]:
    """The ten most frequent words, equal ones in order of the alphabet."""
    counts = Counter(word for record in records for word in WORD.findall(record["text"].lower()))
    return [list(one) for one in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:10]]


def test_it_gives_what_a_counter_gives() -> None:
    """The list in the slate, and the last one emitted, are those of a Counter over all words."""
    app, _ = read_app(EXAMPLES / "top_words.toml")
    run = ms.testing.run(app, {"quotes": quotes()})
    assert len(quotes()) >= 40
    assert run.slate("top", "").top == top_words(quotes())
    last = run.stream("tops")[-1].value
    assert last == {"key": "", "top": top_words(quotes()), "exact": True}
    assert run.dead_letters == []


def test_it_is_right_all_the_way() -> None:
    """After each quote the list is that of the quotes so far."""
    app, _ = read_app(EXAMPLES / "top_words.toml")
    run = ms.testing.run(app)
    for number, record in enumerate(quotes(), start=1):
        run.feed({"quotes": [record]})
        assert run.slate("top", "").top == top_words(quotes()[:number])


@settings(max_examples=examples(8))
@given(
    cuts=st.lists(st.integers(0, 44), max_size=5), lane=st.sampled_from(["one-task", "shuffled"])
)
def test_batches_do_not_matter(cuts: list[int], lane: Any) -> None:
    """On the engine, in order of arrival, the last list is the same wherever the batches end."""
    app, _ = read_app(EXAMPLES / "top_words.toml")
    engine = InProcess(app.workflow(), lane=lane)
    events = ms.testing.run(app, {"quotes": quotes()}).stream("quotes")
    edges = sorted(cuts)
    for start, stop in zip([0, *edges], [*edges, len(events)], strict=True):
        engine.batch(events[start:stop])
    engine.settle(final=True)
    last = max(engine.streams["tops"], key=lambda event: event.ts)
    assert last.value["top"] == top_words(quotes())
    assert engine.letters == []
