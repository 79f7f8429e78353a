"""ShuffleBench's shape with Pathway: records go to the consumers of the rules that match them."""

from __future__ import annotations

import pathway as pw
from matching import Rules
from on_pathway.places import process, read, run, slots

rules = Rules()


class Record(pw.Schema):
    number: int
    pad: str


@pw.udf
def match(number: int) -> tuple[str, ...]:
    slots[process] += 1
    found: tuple[str, ...] = rules.matching(number)
    return found


@pw.reducers.stateful_single
def consume(state: tuple[int, int] | None, number: int, pad: str) -> tuple[int, int]:
    count, total = state or (0, 0)
    return count + 1, total + number


records = read(Record, "")
matched = records.select(pw.this.number, pw.this.pad, key=match(pw.this.number)).flatten(
    pw.this.key
)
states = matched.groupby(pw.this.key).reduce(
    pw.this.key, value=consume(pw.this.number, pw.this.pad)
)
run(states, records.reduce(total=pw.reducers.count()))
