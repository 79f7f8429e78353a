"""A Python client of a Millstream server: small, typed, synchronous.

client       the calls
values       what they give back
batches      events as NDJSON bodies
wire         one server over HTTP: asking, trying again, wording errors
retrying     when to try again
listening    server-sent events over as many connections as it takes
sse          how server-sent events are read
"""

from millstream.client.client import DEFAULT_URL, Client
from millstream.client.values import Gap, Record, Refused, Sent, Slate

__all__ = ["DEFAULT_URL", "Client", "Gap", "Record", "Refused", "Sent", "Slate"]
