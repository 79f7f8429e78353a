"""Counts the keys with PyFlink's DataStream API: a value state for each key, in RocksDB."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from on_flink.places import LAST, TEXT, counter, environment, lines, written
from pyflink.common.typeinfo import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    """Counts; the count comes out when the input is over."""

    def open(self, context: RuntimeContext) -> None:
        self._count = context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._slots, self._number = counter(context)

    def process_element(self, key: str, context: KeyedProcessFunction.Context) -> None:
        count = self._count.value()
        if count is None:
            count = 0
            context.timer_service().register_event_time_timer(LAST)
        self._count.update(count + 1)
        self._slots[self._number] += 1

    def on_timer(self, at: int, context: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield json.dumps([context.get_current_key(), self._count.value()])


env = environment()
keys = lines(env, "").map(lambda line: json.loads(line)["key"], output_type=TEXT)
written(keys.key_by(lambda key: key, key_type=TEXT).process(Count(), output_type=TEXT))
env.execute("count")
