"""ShuffleBench's shape with PyFlink: records go to the consumers of the rules that match them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from matching import Rules
from on_flink.places import LAST, TEXT, counter, environment, lines, written
from pyflink.common.typeinfo import Types
from pyflink.datastream.functions import FlatMapFunction, KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor


class Match(FlatMapFunction):
    def open(self, context: RuntimeContext) -> None:
        self._rules = Rules()
        self._slots, self._number = counter(context)

    def flat_map(self, line: str) -> Iterator[tuple[str, str]]:
        self._slots[self._number] += 1
        for rule in self._rules.matching(json.loads(line)["number"]):
            yield rule, line


class Consume(KeyedProcessFunction):
    """Holds the count and the sum of a rule's records, which come out when the input is over."""

    def open(self, context: RuntimeContext) -> None:
        kind = Types.TUPLE([Types.LONG(), Types.LONG()])
        self._state = context.get_state(ValueStateDescriptor("state", kind))

    def process_element(
        self, matched: tuple[str, str], context: KeyedProcessFunction.Context
    ) -> None:
        state = self._state.value()
        if state is None:
            state = 0, 0
            context.timer_service().register_event_time_timer(LAST)
        self._state.update((state[0] + 1, state[1] + json.loads(matched[1])["number"]))

    def on_timer(self, at: int, context: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield json.dumps([context.get_current_key(), list(self._state.value())])


env = environment()
pair = Types.TUPLE([TEXT, TEXT])
matched = lines(env, "").flat_map(Match(), output_type=pair)
written(matched.key_by(lambda item: item[0], key_type=TEXT).process(Consume(), output_type=TEXT))
env.execute("rules")
