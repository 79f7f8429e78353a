"""A reputation for every user, moved by who retweets and answers them (Muppet, example 3).

When A retweets or answers B, B's score rises by a share of A's score at that moment. A's score is
in A's slate and B's in B's, so the news travels: the tweet goes to the slate of A, which emits an
endorsement keyed B that carries A's score, and the same update applies it to B. The stream
`endorsements` is thus both published and read by `score`: a cycle.

The result depends on the order of events, across users: what an endorsement is worth depends on
those that its author had received before. The declared delay of one second says that an endorsement
takes effect a second after the tweet, and makes event-time order exact in spite of the cycle.

    python examples/generate.py reputation --events 10000 --out /tmp/tweets
    millstream run examples/reputation.py --source tweets=json:/tmp/tweets --available-now
    millstream slates get score user1
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import millstream as ms

SHARE = 0.1
"""The fraction of the author's score that an endorsement is worth."""
HIGHEST = 100.0
"""Scores near this one hardly rise any more."""
NAMED = re.compile(r"^(?:RT )?@(\w+)")
"""The user whom a retweet or an answer names at its start."""

app = ms.App("reputation", order="event-time")
app.source("tweets", key="user", ts="time", lateness="10s")
app.stream("endorsements", delay="1s")


@dataclass
class Reputation:
    """A user's score, and how many endorsements made it."""

    score: float = 1.0
    endorsements: int = 0


@app.update("tweets", "endorsements", publishes="endorsements", slate=Reputation)
def score(event: ms.Event, slate: Reputation) -> Iterator[object]:
    if event.stream == "endorsements":
        slate.score += SHARE * event.value * (1 - slate.score / HIGHEST)
        slate.endorsements += 1
        return
    named = NAMED.match(event.value["text"])
    if named and named[1] != event.key:
        yield ms.emit(key=named[1], value=slate.score)
