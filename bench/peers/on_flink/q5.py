"""Nexmark's q5 with PyFlink: SQL over sliding windows, as in Flink's own Nexmark."""

from __future__ import annotations

from on_flink.sql import start_of, tables

COUNTS = """
    SELECT auction, COUNT(*) AS num, window_start, window_end
    FROM TABLE(HOP(TABLE bids, DESCRIPTOR(`at`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
"""
_, t_env = tables()
t_env.execute_sql(f"""
    INSERT INTO items
    SELECT {start_of("C.window_start")}, C.num, C.auction
    FROM ({COUNTS}) C
    JOIN (
        SELECT MAX(num) AS most, window_start, window_end
        FROM ({COUNTS}) GROUP BY window_start, window_end
    ) M
    ON C.window_start = M.window_start AND C.window_end = M.window_end AND C.num >= M.most
""").wait()
