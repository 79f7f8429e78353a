r"""Words in the logs of four nodes, each with words of its own (iMR, section 5.3).

The count of each word in a window, with bounds if some of it is missing (`words`), and its share in
all words of the window (`shares`). A window is of 10,000 records of each node, in ten panes.

Make logs, and read them on Spark:

    python -m examples.imr.word_traffic --out /tmp/words
    millstream run examples/skewed_words.py:files --final \
        --source node1=json:/tmp/words/node1 --source node2=json:/tmp/words/node2 \
        --source node3=json:/tmp/words/node3 --source node4=json:/tmp/words/node4 \
        --sink words=json:/tmp/word-counts --sink shares=json:/tmp/word-shares

Or leave them where they are, with an agent beside each (`--once`: a log that grows no more):

    millstream run examples/skewed_words.py:app
    millstream agent examples/skewed_words.py:app --job words --node node1 \
        --log '/tmp/words/node1.log' --root http://127.0.0.1:8470 --once   # and so on for each
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# A folder of scripts: beside `millstream run` its modules are found from the checkout.
sys.path.append(str(Path(__file__).resolve().parent.parent))

import millstream as ms
from examples.imr.by_window import bounds, by_window, is_over

NODES = ("node1", "node2", "node3", "node4")
LOGS = ms.windows.Logs(ts="time", unit="ms")


def words(record: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """A pair for each word."""
    for word in record["line"].split():
        yield word, 1


def add(a: int, b: int) -> int:
    return a + b


def word_count(**asked: Any) -> ms.windows.Job:
    """The job; `asked` is what is asked of its windows: a fidelity, a latency, other sizes."""
    sizes: dict[str, Any] = {"by": "records", "range": 10_000, "pane": 1_000}
    return ms.windows.Job(map=words, combine=add, bounds="count", **{**sizes, **asked})


def shares(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
    """Collects the word counts of a window, and emits each word's share when the window is over."""
    counts: dict[str, int] = slate.setdefault("counts", {})
    if "over" not in event.value:
        counts[event.value["key"]] = event.value["answer"]
        return
    slate["told"] = slate.get("told", 0) + 1
    if not is_over(event.value["over"], slate["told"]):
        return
    total = sum(counts.values())
    for word in sorted(counts):
        said = {"count": counts[word], "share": counts[word] / total}
        yield ms.emit(key=word, value={**bounds(event.value["over"]), **said})
    yield ms.forget()


def application(
    name: str,
    job: ms.windows.Job,
    nodes: Sequence[str] = NODES,
    logs: ms.windows.Logs | None = None,
) -> ms.App:
    """The job and its shares: with `logs` panes come from agents, without from files."""
    app = ms.App(name, order="event-time" if logs is None else "arrival")
    if logs is None:
        for node in nodes:
            app.source(node, ts="time", unit="ms")
    app.add(job, name="words", nodes=list(nodes), **({} if logs is None else {"logs": logs}))
    app.map("words", "words.windows", publishes="words.by_window", name="by_window")(by_window)
    app.output("shares")
    app.update("words.by_window", publishes="shares")(shares)
    return app


job = word_count()
app = application("skewed-words", job, logs=LOGS)
files = application("skewed-words-files", job)
