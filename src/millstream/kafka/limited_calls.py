"""Calls of the client library that end in time, even if the library waits.

librdkafka has calls that wait without a limit, whatever time-out they are given. If the coordinator
of a group has died, `send_offsets_to_transaction` waits until the connection to any broker changes,
which may never happen (its issues 5456 and 5511). Closing or freeing a client waits for its
threads. Nothing can end such a call. So each call has a thread of its own, which is left behind if
the call does not return in time; it frees the client when it does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, Generic, TypeVar

from millstream.kafka.client import AWAY_SECONDS

Client = TypeVar("Client")
T = TypeVar("T")


class CallOverdue(Exception):  # not an error for users: callers say what it means
    """A call did not return in time. It may still have its effect later."""


class LimitedClient(Generic[Client]):
    """A client whose calls end in time. It must not be used after a CallOverdue, only discarded."""

    def __init__(self, client: Client) -> None:
        self._held = [client]
        """The client; empty once it is discarded. No frame of the caller keeps another reference:
        an exception would keep the frame, and so free the client in the caller's thread."""
        self._is_called = False

    @property
    def client(self) -> Client:
        """The client, for calls that do not wait."""
        return self._held[0]

    def call(self, name: str, function: Callable[[Client], T], seconds: float) -> T:
        """Returns `function(client)`; raises CallOverdue if that takes more than the seconds."""
        answer: Future[T] = Future()
        self._is_called = True
        _started(_answer, self._held, function, answer)
        if not wait([answer], seconds).done:
            raise CallOverdue(f"{name} did not return within {seconds:g} s")
        self._is_called = False
        return answer.result()

    def discard(self, end: Callable[[Client], object] | None = None) -> None:
        """Frees the client, after `end(client)`; waits some seconds for that."""
        held, self._held = self._held, []
        if self._is_called:
            held.clear()  # freed by the thread of the call
        else:
            _started(_end, held, end).join(AWAY_SECONDS)


def close_in_time(consumer: Any) -> None:
    """Closes a consumer that no call uses; leaves that to a thread if it takes some seconds."""
    _started(consumer.close).join(AWAY_SECONDS)


def _started(function: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, name="kafka call", daemon=True)
    thread.start()
    return thread


def _answer(held: list[Client], function: Callable[[Client], T], answer: Future[T]) -> None:
    try:
        result = function(held[0])
    except BaseException as error:
        answer.set_exception(error.with_traceback(None))  # its frames refer to the client
    else:
        answer.set_result(result)


def _end(held: list[Client], end: Callable[[Client], object] | None) -> None:
    if end is not None:
        with suppress(Exception):
            end(held[0])
    held.clear()
