"""Push or pull: the decisions of Feeding Frenzy, section 3, as pure functions.

H is the cost of pushing one event to one consumer, L the cost of pulling from one producer, and
`ratio` is H/L. Rates are in events or queries a second.

Per-producer coherency decides for each pair (Lemma 1), global coherency for each consumer (Lemma
2). Lemma 2 applies to stores where the cost of a query does not depend on the number of producers
that it pulls from. Here a query costs L for each of them. So an application uses Lemma 1 with
either coherency, unless it is configured otherwise.

Neither the producer nor the consumer of a pair knows both rates. So consumers report the class of
their rate (see `rates`), and a producer pushes to those whose class is at least
`lowest_pushed_class`. A consumer that decides for all of its producers reports `ALWAYS` or `NEVER`
(`reported_class`).
"""

from __future__ import annotations

from typing import Literal

from millstream.feeds.policy.rates import ALWAYS, NEVER, class_from

Side = Literal["push", "pull"]
HOLD = 1.5
"""A consumer must pass the threshold by this factor before all of its producers change side."""


def cheaper_side(query_rate: float, event_rate: float, ratio: float) -> Side:
    """Push if the consumer queries often, relative to how often the producer posts (Lemma 1), or
    relative to how often all of its producers post together (Lemma 2).

    >>> cheaper_side(6.0, 2.0, 3.0), cheaper_side(5.9, 2.0, 3.0)
    ('push', 'pull')
    """
    return "push" if query_rate >= ratio * event_rate else "pull"


def held_side(
    before: Side, query_rate: float, event_rate: float, ratio: float, band: float = HOLD
) -> Side:
    """Like `cheaper_side`, but changes side only past the threshold by the factor `band`.

    >>> held_side("pull", 7.0, 2.0, 3.0), held_side("pull", 9.0, 2.0, 3.0)
    ('pull', 'push')
    """
    moved = ratio * band if before == "pull" else ratio / band
    return cheaper_side(query_rate, event_rate, moved)


def lowest_pushed_class(event_rate: float, ratio: float) -> int:
    """Lemma 1 for all followers of a producer: the lowest class whose rates are all on push.

    >>> lowest_pushed_class(1.0, 2.0), lowest_pushed_class(0.0, 2.0) == NEVER
    (164, True)
    """
    return class_from(ratio * event_rate)


def ratio_of_consumer(ratio: float, follows: int) -> float:
    """H/L for Lemma 2, where L is the cost of a whole query: it pulls from each of the producers
    that the consumer follows.

    >>> ratio_of_consumer(6.0, 3), ratio_of_consumer(6.0, 0)
    (2.0, 6.0)
    """
    return ratio / max(1, follows)


def reported_class(
    before: int, query_rate: float, all_events: float, ratio: float, follows: int
) -> int:
    """Lemma 2: the class to report if a consumer decides for all of its producers, which together
    post at the rate `all_events`. `before` is the class that it reported last.

    >>> reported_class(NEVER, 9.0, 6.0, 3.0, 3) == ALWAYS
    True
    """
    side: Side = "push" if before == ALWAYS else "pull"
    side = held_side(side, query_rate, all_events, ratio_of_consumer(ratio, follows))
    return ALWAYS if side == "push" else NEVER
