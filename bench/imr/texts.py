"""Words skewed over nodes, as lines of logs, drawn by seed.

Some words are likelier on some nodes than on others, as in the paper's Figure 9: each word is at
home on one node, and there it is `SKEW` times as likely. How likely words are otherwise follows
Zipf's law. A line has `WORDS` words; in a file lines are longer or shorter for a while, by up to
`VARIES` words, so that panes differ in how many words they have. Where a node is pressed lines have
`LONG` words: most of the work is then to count, and not to read a line's time, which a pane that is
given up needs too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import accumulate, cycle, islice
from pathlib import Path
from random import Random

VOCABULARY = 1_000
WORDS, VARIES, LONG = 10, 2, 30
RUN = 5_000
"""Lines of a file that are of the same length."""
SKEW = 5.0
SEED = 17
POOL = 1_000


@cache
def _weights(node: int, nodes: int) -> tuple[float, ...]:
    """Returns the cumulative probabilities of the words at a node."""
    likely = [
        (SKEW if word % nodes == node else 1.0) / (1 + word // nodes) for word in range(VOCABULARY)
    ]
    return tuple(accumulate(likely))


def words_at(node: int, nodes: int, lines: int, words: int = WORDS) -> Iterator[list[str]]:
    """Returns the words of a number of lines of a node."""
    random, weights = Random(f"{SEED}/{node}/{nodes}"), _weights(node, nodes)
    names = [f"w{word}" for word in range(VOCABULARY)]
    for _ in range(lines):
        yield random.choices(names, cum_weights=weights, k=words)


@cache
def pool(node: int, nodes: int, words: int = WORDS) -> tuple[bytes, ...]:
    """Lines to take again and again, each with its end."""
    return tuple(" ".join(line).encode() + b"\n" for line in words_at(node, nodes, POOL, words))


def written(path: Path, node: int, nodes: int, lines: int, words: int = WORDS) -> Path:
    """Returns a log with a number of lines and of words, drawn from pools. It is made once and
    kept."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        random, fresh = Random(f"{SEED}/{node}"), path.with_suffix(".writing")
        with open(fresh, "wb") as file:
            for begin in range(0, lines, RUN):
                taken = pool(node, nodes, words + random.randint(-VARIES, VARIES))
                file.writelines(islice(cycle(taken), min(RUN, lines - begin)))
        fresh.rename(path)
    return path
