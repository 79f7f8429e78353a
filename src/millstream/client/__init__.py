"""A small, typed Python client of a Millstream server.

client        the calls
async_client  the same calls for asyncio
feeds         the calls for feeds
values        results of the calls, beside the server's messages
batches       events as NDJSON bodies
wire          HTTP to one or several servers: requests, retries, errors
event_stream  server-sent events over as many connections as it takes
sse           parses server-sent events
"""

from millstream.client.async_client import AsyncClient, AsyncFeeds
from millstream.client.client import DEFAULT_URL, Client
from millstream.client.feeds import FeedsClient
from millstream.client.values import FeedsSent, Gap, Live, Record, Refused, Sent, Slate
from millstream.messages.feeds import FeedPage, Follow, Item, Unread
from millstream.messages.letters import Retried

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
