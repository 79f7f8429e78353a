"""Nexmark's q11 with PyFlink: SQL over session windows.

Sessions that touch are one, so the gap is a millisecond less.
"""

from __future__ import annotations

from on_flink.sql import start_of, tables

_, t_env = tables()
t_env.execute_sql(f"""
    INSERT INTO answers
    SELECT bidder || ' ' || {start_of("window_start")}, COUNT(*)
    FROM TABLE(SESSION(
        TABLE bids PARTITION BY bidder, DESCRIPTOR(`at`), INTERVAL '9.999' SECOND(1, 3)))
    GROUP BY bidder, window_start, window_end
""").wait()
