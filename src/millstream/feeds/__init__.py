"""Feeds of followed producers, by the push and pull of Feeding Frenzy; complete and gapless.

app = ms.App("social")
app.add(ms.feeds.Feeds(), name="feeds")
"""

from millstream.feeds.feeds import Feeds

__all__ = ["Feeds"]
