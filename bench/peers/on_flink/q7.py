"""Nexmark's q7 with PyFlink: SQL over tumbling windows."""

from __future__ import annotations

from on_flink.sql import start_of, tables

_, t_env = tables()
t_env.execute_sql(f"""
    INSERT INTO answers
    SELECT {start_of("window_start")}, MAX(price)
    FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(`at`), INTERVAL '10' SECOND))
    GROUP BY window_start, window_end
""").wait()
