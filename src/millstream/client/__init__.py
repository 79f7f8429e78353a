"""A small, typed Python client of a Millstream server.

client        the calls
async_client  the same calls for asyncio
feeds         the calls for feeds
feed_values   results of the calls for feeds
values        results of the other calls
answers       the server's JSON answers
batches       events as NDJSON bodies
wire          HTTP to one or several servers: requests, retries, errors
retry_pause   when to retry
event_stream  server-sent events over as many connections as it takes
sse           parses server-sent events
"""

from millstream.client.async_client import AsyncClient, AsyncFeeds
from millstream.client.client import DEFAULT_URL, Client
from millstream.client.feed_values import FeedPage, Follow, Item, Live, Unread
from millstream.client.feeds import FeedsClient, FeedsSent
from millstream.client.values import Gap, Record, Refused, Retried, Sent, Slate

__all__ = [
    "DEFAULT_URL",
    "AsyncClient",
    "AsyncFeeds",
    "Client",
    "FeedPage",
    "FeedsClient",
    "FeedsSent",
    "Follow",
    "Gap",
    "Item",
    "Live",
    "Record",
    "Refused",
    "Retried",
    "Sent",
    "Slate",
    "Unread",
]
