"""Nexmark's q4 with PyFlink: SQL, whose answers change as bids come in; each change is a line. With
small batches of changes, as Flink's guide to tuning has it."""

from __future__ import annotations

import json

from on_flink.places import TEXT, written
from on_flink.sql import tables
from pyflink.common import Row
from pyflink.datastream.functions import MapFunction


class Line(MapFunction):
    """A change as a line, numbered, so that the last of a key is known."""

    def __init__(self) -> None:
        self._number = 0

    def map(self, change: Row) -> str:
        self._number += 1
        return json.dumps([change[0], change[1], self._number])


env, t_env = tables("bids")
for name, value in (
    ("table.exec.mini-batch.enabled", "true"),
    ("table.exec.mini-batch.allow-latency", "1 s"),
    ("table.exec.mini-batch.size", "5000"),
):
    t_env.get_config().set(name, value)
averages = t_env.sql_query("""
    SELECT category, AVG(CAST(final AS DOUBLE)) AS average
    FROM (
        SELECT MAX(B.price) AS final, A.auction, A.category
        FROM auctions A JOIN bids B ON A.auction = B.auction
        WHERE B.ts BETWEEN A.ts AND A.expires
        GROUP BY A.auction, A.category
    )
    GROUP BY category
""")
changes = t_env.to_changelog_stream(averages)
kept = changes.filter(lambda row: row.get_row_kind().name in ("INSERT", "UPDATE_AFTER"))
written(kept.key_by(lambda row: row[0], key_type=TEXT).map(Line(), output_type=TEXT))
env.execute("q4")
