"""Requests for a slate by its key together with the parameters of a page."""

from __future__ import annotations

import httpx
from served import MadeStore, served


def test_one_key_among_those_of_a_page(tmp_path):
    """Beside prefix and after, a key is answered if it is one of those; a limit changes nothing."""
    made = MadeStore(tmp_path / "store", {"count": "dict"})
    made.commit({"count": {"ab": {"n": 1}}})
    with served(made.path) as url, httpx.Client(base_url=url) as client:
        for query, status in {
            "prefix=a": 200,
            "prefix=b": 404,
            "after=aa": 200,
            "after=ab": 404,
            "after=&limit=1": 200,
            "limit=0": 400,
        }.items():
            assert client.get(f"/slates/count?key=ab&{query}").status_code == status, query
