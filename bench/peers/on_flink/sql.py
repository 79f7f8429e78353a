"""Tables of Nexmark's streams for PyFlink's Table API, and a sink for their answers.

No Python runs for an event, so a job does not say how far it is.
"""

from __future__ import annotations

import os
from pathlib import Path

from on_flink.places import environment
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment

AUCTIONS = "auction STRING, category STRING, ts BIGINT, expires BIGINT"
BIDS = """auction STRING, bidder STRING, price BIGINT, ts BIGINT,
    `at` AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR `at` AS `at`"""
EVENTS = """`key` STRING, ts BIGINT, n INT,
    `at` AS TO_TIMESTAMP_LTZ(ts / 1000, 3), WATERMARK FOR `at` AS `at`"""
ANSWERS = "`key` STRING, `value` BIGINT"


def tables(bids: str = "bids_in_one") -> tuple[StreamExecutionEnvironment, StreamTableEnvironment]:
    """An environment with the tables `events`, `bids`, `auctions`, `answers`, `items`; the bids are
    in order if they are in one file."""
    env = environment()
    made = StreamTableEnvironment.create(env)
    made.get_config().set("table.local-time-zone", "UTC")
    source, result = Path(os.environ["PEER_INPUT"]), os.environ["PEER_RESULT"]
    made.execute_sql(_table("events", EVENTS, source))
    made.execute_sql(_table("auctions", AUCTIONS, source / "auctions"))
    made.execute_sql(_table("bids", BIDS, source / bids))
    made.execute_sql(_table("answers", ANSWERS, Path(result)))
    made.execute_sql(_table("items", f"{ANSWERS}, auction STRING", Path(result)))
    return env, made


def start_of(column: str) -> str:
    """The milliseconds of a window's start, as text."""
    return (
        f"CAST(1000 * UNIX_TIMESTAMP(CAST({column} AS STRING)) + "
        f"EXTRACT(MILLISECOND FROM {column}) AS STRING)"
    )


def _table(name: str, columns: str, folder: Path) -> str:
    return f"""CREATE TABLE {name} ({columns})
        WITH ('connector' = 'filesystem', 'path' = '{folder.as_uri()}', 'format' = 'json')"""
