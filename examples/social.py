"""A small social network: users follow each other, post, and read their feeds (Feeding Frenzy).

Each pair of a producer and a follower is on push or on pull, whichever costs less, and moves when
one posts or the other looks more or less often. Rates forget half of what they know in ten minutes
here, so that this can be seen while one watches; a day, the default, is right for most.

    millstream run examples/social.py

shows where to look: the page has the feeds, and why each item was pushed or pulled. Traffic for it,
from another terminal, which stops by itself:

    python -m examples.social_traffic --seconds 20

By hand:

    millstream feeds follow xena ann
    millstream feeds post ann "hello, world"
    millstream feeds show xena --url http://127.0.0.1:8470
    millstream feeds verify --all
"""

import millstream as ms

app = ms.App("social")
app.add(ms.feeds.Feeds(limit=20, memory="10m"), name="feeds")
