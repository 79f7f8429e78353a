"""Followed feeds: Feeding Frenzy's push and pull, complete and without a gap.

app = ms.App("social")
app.add(ms.feeds.Feeds(), name="feeds")
"""

from millstream.feeds.feeds import Feeds

__all__ = ["Feeds"]
