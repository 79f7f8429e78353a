"""A Python client of a Millstream server: small, typed, synchronous.

client       the calls
feeds        those about feeds, and feed_values what they give back
values       what they give back
batches      events as NDJSON bodies
wire         one server over HTTP: asking, trying again, wording errors
retrying     when to try again
listening    server-sent events over as many connections as it takes
sse          how server-sent events are read
"""

from millstream.client.client import DEFAULT_URL, Client
from millstream.client.feed_values import FeedPage, Follow, Item, Live, Unread
from millstream.client.feeds import Feeds, FeedsSent
from millstream.client.values import Gap, Record, Refused, Sent, Slate

__all__ = [
    "DEFAULT_URL",
    "Client",
    "FeedPage",
    "Feeds",
    "FeedsSent",
    "Follow",
    "Gap",
    "Item",
    "Live",
    "Record",
    "Refused",
    "Sent",
    "Slate",
    "Unread",
]
