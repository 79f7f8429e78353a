r"""Errors in the logs of three web servers, over the last ten minutes, every two (iMR).

A continuous MapReduce job: `requests` maps a record to a pair for its page, `combine` adds them up
once for each server and two minutes, and windows are put together from that. What comes out says
how much of the logs it is made of.

    millstream run examples/log_windows.py --available-now --store /tmp/log-windows \
        --source web1=json:examples/data/logs/web1 --source web2=json:examples/data/logs/web2 \
        --source web3=json:examples/data/logs/web3 --sink errors=json:/tmp/errors
"""

from collections.abc import Iterator, Sequence

import millstream as ms

NODES = ("web1", "web2", "web3")

app = ms.App("log-windows", order="event-time")
for node in NODES:
    app.source(node, ts="time", unit="s")


def requests(record: dict[str, object]) -> Iterator[tuple[str, list[int]]]:
    """Maps a request to its page and [requests, errors]."""
    status = record["status"]
    assert isinstance(status, int)
    yield str(record["page"]), [1, int(status >= 500)]


def add(a: list[int], b: list[int]) -> list[int]:
    return [x + y for x, y in zip(a, b, strict=True)]


def subtract(a: list[int], b: list[int]) -> list[int]:
    return [x - y for x, y in zip(a, b, strict=True)]


def rate(page: str, values: Sequence[list[int]]) -> dict[str, object]:
    """Returns the requests, the errors and the error rate of a page in a window."""
    ((count, errors),) = values
    return {"requests": count, "errors": errors, "rate": errors / count}


job = ms.windows.Job(
    map=requests, combine=add, uncombine=subtract, reduce=rate, range="10m", slide="2m"
)
app.add(job, name="errors", nodes=NODES)
