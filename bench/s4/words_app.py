"""The application of the S4 evaluation (section IV, Figure 2), as processing elements.

    words -> WordReceiver -> eleven -> Eleven
                          -> three  -> Three -> divisible -> Aggregation -> an output

WordReceiver has no key and no memory. It makes an event Eleven and an event Three of each word
that is a number, for each of so many keys: the paper's way to multiply the load. Eleven and Three
are one instance a key. Aggregation is one instance; it counts the events of Three whose number is
divisible, and puts its count out every ten seconds of event time.

`millstream run bench/s4/words_app.py:keys_4` runs it with four keys. An application's own folder
comes first on the path of imports, so this file imports nothing that lies beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import millstream as ms
from millstream.elements.element import Configured

LENGTH = 100
"""Characters of a word."""
LIMIT = 1_000_000
"""Events of a batch for each shard of an element: more than there ever are. Without a limit a key
may have a quarter of a batch's time, so that the others need not wait for one that is hot. Here
there are no others."""


def digit_sum(digits: str) -> int:
    """The sum of the digits of a text: what a byte is above `0`, added up."""
    return sum(digits.encode()) - 48 * len(digits)


def divisible_by_three(digits: str) -> bool:
    """True if a number is divisible by three, by the repeated sum of its digits.

    >>> divisible_by_three("111111"), divisible_by_three("1000"), divisible_by_three("0")
    (True, False, True)
    """
    while len(digits) > 1:
        digits = str(digit_sum(digits))
    return digits in "0369"


def divisible_by_eleven(digits: str) -> bool:
    """True if a number is divisible by eleven, by the alternating sum of its digits.

    >>> divisible_by_eleven("121"), divisible_by_eleven("1001"), divisible_by_eleven("111")
    (True, True, False)
    """
    while len(digits) > 1:
        digits = str(abs(digit_sum(digits[0::2]) - digit_sum(digits[1::2])))
    return digits == "0"


@dataclass
class WordReceiver(ms.Element):
    """Makes events Eleven and Three of a word that is a number, as many as there are keys."""

    copies: Configured[int] = 1

    def process_event(self, event: ms.Event) -> Iterator[Any]:
        word = event.value["word"]
        if len(word) == LENGTH and word.isascii() and word.isdigit():
            for number in range(1, self.copies + 1):
                key = str(number)
                yield ms.emit("eleven", key=key)
                yield ms.emit("three", key=key)


@dataclass
class Receiver(ms.Element):
    """The slate of Eleven and Three: enough to detect a single event that is lost or counted
    twice."""

    processed: int = 0
    divisible: int = 0
    numbers: int = 0
    """The sum of the numbers of the words that were processed."""

    def took(self, event: ms.Event, divisible: bool) -> None:
        self.processed += 1
        self.divisible += divisible
        self.numbers += event.value["n"]


@dataclass
class Eleven(Receiver):
    """Checks numbers for eleven."""

    def process_event(self, event: ms.Event) -> None:
        self.took(event, divisible_by_eleven(event.value["word"]))


@dataclass
class Three(Receiver):
    """Checks numbers for three, and passes those that are divisible on."""

    def process_event(self, event: ms.Event) -> Iterator[Any]:
        divisible = divisible_by_three(event.value["word"])
        self.took(event, divisible)
        if divisible:
            yield ms.emit("divisible", value={"n": event.value["n"]})


@dataclass
class Aggregation(ms.Element):
    """Counts what Three found."""

    processed: int = 0
    numbers: int = 0

    def process_event(self, event: ms.Event) -> None:
        self.processed += 1
        self.numbers += event.value["n"]

    def output(self) -> Iterator[Any]:
        yield self.publish({"processed": self.processed})


def application(keys: int) -> ms.App:
    """Returns the application with a number of keys."""
    app = ms.App("s4-evaluation")
    app.source("words", ts="ts", unit="us")
    app.add(WordReceiver(keys), keys={"words": "*"}, publishes=("eleven", "three"))
    app.add(Eleven(), keys="eleven", limit=LIMIT)
    app.add(Three(), keys="three", publishes="divisible", limit=LIMIT)
    app.add(Aggregation(), keys={"divisible": "*"}, every="10s", publish="counts", limit=LIMIT)
    return app


keys_1, keys_2, keys_4, keys_8 = (application(keys) for keys in (1, 2, 4, 8))
