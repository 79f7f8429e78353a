"""The made-up target system of `optimise.py` as a program of its own, which closes the loop.

    millstream run examples/optimise.py
    python -m examples.optimise_target [--url http://127.0.0.1:8470] [--seconds 120]

It reads the parameters as they are put out (a tail of the stream `parameters`), applies them to its
two slices, and sends what its users do then (the stream `events`). Its days are short: six hours
pass in a second. Started again, it goes on at the time that the application has come to, with the
parameters that hold.
"""

from __future__ import annotations

import argparse
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import millstream as ms
from examples.optimising.target import EVERY, MINUTE, OPTIMUM, PARAMETERS, Target, objective
from millstream.client import DEFAULT_URL, Gap, Record

PAUSE = 0.1
"""Seconds between two requests."""


def listen(
    records: Iterator[Record | Gap], comparison: str, messages: queue.Queue[dict[str, Any]]
) -> None:
    """Put the parameters of a comparison into the queue as they come."""
    for record in records:
        if isinstance(record, Record) and record.value["key"] == comparison:
            messages.put(record.value["value"])


def begin(client: ms.Client, seed: int) -> Target:
    """The target system, at the present or at the time that the application has come to."""
    horizon = client.status().horizon or 0
    return Target(seed, max(int(time.time() * 1_000_000), horizon) + 2 * EVERY)


def run(client: ms.Client, seed: int, hours: float, seconds: float | None) -> Target:
    """Live `hours` a second until the search is finished, or for so many seconds.

    Its time goes from the first parameters on: what happened before would be of no cycle.
    """
    target, messages = begin(client, seed), queue.Queue[dict[str, Any]]()
    hello, first = target.hello(), target.time
    records = client.tail("parameters")  # from now on, so before anything can come of the hello
    listening = threading.Thread(
        target=listen, args=(records, hello["comparison"], messages), daemon=True
    )
    listening.start()
    client.send_one("starts", hello)
    wait(messages, listening, seconds)
    start, finished = time.monotonic(), False
    while not finished and (seconds is None or time.monotonic() - start < seconds):
        time.sleep(PAUSE)
        check(listening)
        while not messages.empty():
            parameters = messages.get()
            if target.apply(parameters):
                print(shown(parameters, target.time - first), flush=True)
            finished = parameters["finished"]
        passed = (time.monotonic() - start) * hours * 60 * MINUTE
        client.send("events", target.run(first + int(passed)))
    return target


def wait(
    messages: queue.Queue[dict[str, Any]], listening: threading.Thread, seconds: float | None
) -> None:
    """Until there are parameters; RunError if so many seconds have passed."""
    print("waiting for the first parameters: does examples/optimise.py run?", flush=True)
    start = time.monotonic()
    while messages.empty():
        check(listening)
        if seconds is not None and time.monotonic() - start >= seconds:
            raise ms.RunError(
                f"no parameters came within {seconds:g} s; start millstream run "
                "examples/optimise.py first, or give more --seconds"
            )
        time.sleep(PAUSE)


def check(listening: threading.Thread) -> None:
    """RunError if nobody listens any more."""
    if not listening.is_alive():
        raise ms.RunError("no more parameters can be read; the error before this says why")


def shown(message: Mapping[str, Any], passed: int) -> str:
    """Formats the parameters that are tried now, and the best known ones with their true
    objective."""
    tried = "  ".join(_named(parameters) for parameters in message["slices"].values())
    return (
        f"cycle {message['cycle']:>3}  day {passed / (24 * 60 * MINUTE):>4.1f}  {tried}  best "
        f"{_named(message['best'])}: {objective(message['best']) / objective(OPTIMUM):.1%} of the "
        "optimum"
    )


def _named(parameters: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {parameters[name]:.2f}" for name in PARAMETERS)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples.optimise_target",
        description="A search engine with advertising that is tuned by examples/optimise.py.",
    )
    parser.add_argument("--url", default=DEFAULT_URL, help=f"default: {DEFAULT_URL}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=6, help="that pass in a second; default: 6")
    parser.add_argument(
        "--seconds",
        type=float,
        help="stop so long after the first parameters; else when it is found",
    )
    given = parser.parse_args(arguments)
    with ms.Client(given.url) as client:
        target = run(client, given.seed, given.hours, given.seconds)
    print(f"{target.cycle} cycles; the optimum is {_named(OPTIMUM)}")


if __name__ == "__main__":
    main()
