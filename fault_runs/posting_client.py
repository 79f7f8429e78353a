"""`python -m fault_runs.posting_client URLS SEED STOP`: sends the records of a seed by HTTP.

Each chunk of records has an idempotency key. A chunk that was not acknowledged is sent again with
its key, to the next address if that of before does not answer. Some chunks, drawn by seed, are sent
again although they were acknowledged, to another address. So a repeat may reach any server.

The client sends until the file STOP exists. The number of records that were acknowledged, and of
repeats, is in its output.
"""

from __future__ import annotations

import os
import re
import sys
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from fault_runs.chain import records
from fault_runs.processes import Started, wait_until
from millstream.client import Client

MOST_RECORDS = 100_000
CHUNK, PAUSE = 10, 0.2
"""The records of a request, and the seconds between two."""
REPEATED = 0.3
"""The share of acknowledged chunks that are sent again."""
TIMEOUT = 2.0
END_SECONDS = 120.0
_SENT = re.compile(r"sent (\d+), repeated (\d+)")


@dataclass(frozen=True, slots=True)
class PostingClient:
    """A client that is running."""

    started: Started
    stop: Path

    def counts(self) -> tuple[int, int]:
        """The records that were acknowledged, and those that were sent again after that."""
        found = _SENT.findall(self.started.said())
        return (int(found[-1][0]), int(found[-1][1])) if found else (0, 0)

    def await_records(self, count: int) -> None:
        """Wait until so many records were acknowledged."""
        if not wait_until(lambda: self.counts()[0] >= count, self.started):
            raise AssertionError(f"the client has ended: {self.started.said()}")

    def finish(self) -> tuple[int, int]:
        """Lets the client finish its chunk, and end; returns its counts."""
        self.stop.touch()
        if self.started.wait(END_SECONDS) != 0:
            raise AssertionError(f"the client has failed: {self.started.said()}")
        return self.counts()


def main(arguments: list[str]) -> None:
    """Sends until it is told to stop."""
    urls, seed, stop = arguments[0].split(","), int(arguments[1]), Path(arguments[2])
    token, random = os.environ["MILLSTREAM_TOKEN"], Random(seed)
    coming = iter(records(seed, MOST_RECORDS))
    sent = repeated = 0

    def send(client: Client) -> None:
        refused = client.send("records", chunk, idempotency_key=f"chunk-{sent}").refused
        if refused:
            raise AssertionError(f"{refused} records were refused")

    def connected(addresses: list[str]) -> Client:
        return Client(addresses, token=token, timeout=TIMEOUT, retries=None)

    with connected(urls) as steady:
        while not stop.exists():
            chunk = [*islice(coming, CHUNK)]
            send(steady)
            if random.random() < REPEATED:
                first = random.randrange(len(urls))
                with connected([*urls[first:], *urls[:first]]) as other:
                    send(other)
                repeated += len(chunk)
            sent += len(chunk)
            print(f"sent {sent}, repeated {repeated}", flush=True)
            time.sleep(PAUSE)  # the rate of the load


if __name__ == "__main__":
    main(sys.argv[1:])
