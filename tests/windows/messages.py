"""The messages that agents would send to the root of a job, without agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

import millstream as ms
from millstream.model.event import Event
from millstream.windows import Job, Logs
from millstream.windows.panes.message import Message
from millstream.windows.panes.pane_maker import Maker, Making

Sent = dict[str, Any]
"""A `Message` as the JSON that travels, which agents of earlier versions send too."""
NODES = ("a", "b", "c")


def letters(record: Any) -> Iterator[tuple[str, int]]:
    """A pair for each letter."""
    for letter in record:
        yield letter, 1


def add(a: int, b: int) -> int:
    return a + b


def a_job(**job: Any) -> Job:
    given: dict[str, Any] = {"by": "sequence", "sequence": "n", "range": 2, "pane": 1}
    return Job(**{"map": letters, "combine": add, **given, **job})


def an_app(
    job: Job,
    order: Literal["arrival", "event-time"] = "arrival",
    nodes: Sequence[str] = NODES,
) -> ms.App:
    app = ms.App("logs", order=order)
    app.add(job, name="counts", nodes=list(nodes), logs=Logs())
    return app


def told(job: Job, node: str, log: Mapping[int, str], **how: Any) -> list[Sent]:
    """A node's messages: of each pane that the log has, its records one letter each.

    `begin`: the pane that it begins with, said first. `end`: where it stops, the log's end by
    default. `lost`: panes that it gives up. `late`: in which pane it finds records of which.
    `dead`: the number of records of a pane that cannot be read. `over`: it says in the end that its
    log has ended.
    """
    begin = how.get("begin", min(log))
    end = how.get("end", max(log) + 1)
    lost, late = how.get("lost", ()), how.get("late", {})
    maker = Maker(job, node, how.get("tree", ""))
    making = Making(pane=begin)
    said = [maker.begun(making)] if "begin" in how else []
    for pane in range(begin, end):
        if pane in lost:
            maker.give_up(making, "shed")
        for letter in log.get(pane, ""):
            _take(maker, making, letter)
        for of in late.get(pane, ()):
            making.late[str(of)] = making.late.get(str(of), 0) + 1
            making.read += 1
        for _ in range(how.get("dead", {}).get(pane, 0)):
            maker.dead(making, 1)
        said += maker.end(making, pane + 1)
    if how.get("over"):
        said.append(replace(maker.begun(making), over=True))
    return [as_json(message) for message in said]


def as_json(message: Message) -> Sent:
    """Returns a message as JSON."""
    built: Sent = msgspec.to_builtins(message)
    return built


def _take(maker: Maker, making: Making, letter: str) -> None:
    if making.given_up is not None:
        making.shed += 1
        making.shed_bytes += 1
    else:
        maker._combine(making, letter)
        making.records += 1
        making.bytes += 1
    making.read += 1


def events(messages: Iterable[Sent], ts: int = 1_000) -> list[Event]:
    """The messages in this order, ten microseconds apart."""
    return [
        Event("counts.panes", ts + 10 * number, "", dict(message))
        for number, message in enumerate(messages)
    ]


def joined(job: Job, tree: str, messages: Sequence[Sent]) -> Sent:
    """Messages of one pane of several nodes as a parent merges them."""
    merging, partials = job.merging, dict[str, Any]()
    for message in messages:
        for key, value in message["partials"].items():
            read = merging.read(value)
            if key in partials:
                read = merging.merge(merging.read(partials[key]), read)
            partials[key] = merging.write(read)
    nodes = {node: one for message in messages for node, one in message["nodes"].items()}
    return {**messages[0], "tree": tree, "nodes": nodes, "partials": partials}


def windows(run: ms.testing.Run) -> list[tuple[int, str]]:
    """Returns the closed windows and the reasons, in the order of their closing."""
    return [(one.value["from"], one.value["why"]) for one in run.stream("counts.windows")]


def answers(run: ms.testing.Run) -> dict[int, dict[str, Any]]:
    """Returns the answers of each window, by its beginning. The last answer counts."""
    found: dict[int, dict[str, Any]] = {
        one.value["from"]: {} for one in run.stream("counts.windows")
    }
    for one in run.stream("counts"):
        found[one.value["from"]][one.key] = one.value["value"]
    return found


def on_told(run: ms.testing.Run) -> list[dict[str, Any]]:
    """Returns the messages to the agents."""
    return [one.value for one in run.stream("counts.told")]
