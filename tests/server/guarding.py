"""A served store to send all kinds of requests to, and how a refusal must look."""

from __future__ import annotations

from pathlib import Path

import httpx
from raw_http import Answered, head
from served import MadeStore

from millstream.description import Description, SourceDescription, write_description

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
}


def make(path: Path) -> Path:
    """A store with a slate and a source that takes events."""
    made = MadeStore(path, {"count": "dict"})
    made.commit({"count": {"Walmart": {"count": 1}}})
    address = f"log:{made.home.log_of('checkins')}"
    source = SourceDescription("checkins", None, None, None, True, address)
    write_description(path, Description("retail", "arrival", [source], [], ["checkins"], [], {}))
    return path


def is_refused(found: Answered, status: int, said: str = "") -> bool:
    """True if the answer is a JSON error of this status. Checks its text and its headers too."""
    assert found.status == status, found
    assert found.headers["content-type"] == "application/json"
    assert HEADERS.items() <= found.headers.items()
    body = httpx.Response(200, content=found.body).json()
    assert body["status"] == status
    assert said in body["error"]
    return True


def post(url: str, *headers: str) -> bytes:
    return head(url, "POST /streams/checkins HTTP/1.1", "Content-Type: application/json", *headers)
