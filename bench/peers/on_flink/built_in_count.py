"""Counts the keys with Flink SQL, in a window of a day, whose counts come out at the end."""

from __future__ import annotations

from on_flink.sql import tables

_, t_env = tables()
t_env.execute_sql("""
    INSERT INTO answers
    SELECT `key`, COUNT(*)
    FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(`at`), INTERVAL '1' DAY))
    GROUP BY `key`, window_start, window_end
""").wait()
