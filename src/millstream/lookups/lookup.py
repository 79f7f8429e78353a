"""`lookup`: a table of another system that a map reads, through a small cache.

    people = ms.lookup("people", "postgres:people?server=db", key="id", max_age="5m")

    @app.map("clicks", publishes="known")
    def enrich(event):
        person = people.get(event.key)
        if person is not None:
            yield ms.emit(value={**event.value, "city": person["city"]})

An answer is at most `max_age` old, and a process keeps at most `max_size` answers; a missing key is
an answer too. Each call returns a new value, which a map may change.

When the other system fails, the lookup retries for up to `timeout`. After that, with
`on_failure="retry"`, the task fails, and with it the batch, which then has no effect: the run
stops, says why, and takes the same events when it is started again. With `"dead-letter"` the event
becomes a dead letter, and the next event asks again.

A retried task may get a newer answer; the first attempt has no visible effect.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self
from urllib.parse import parse_qsl

import msgspec

from millstream.databases.options import POSTGRES, database_options
from millstream.errors import (
    CodecError,
    DefinitionError,
    FunctionError,
    LookupFailed,
    LookupRefused,
)
from millstream.lookups.answer_codec import encode_answer
from millstream.lookups.backends import Backend, FunctionBackend, SqliteBackend, database_backend
from millstream.model.duration import SECOND, Duration, microseconds, shown_duration
from millstream.model.function import check_arguments, check_name
from millstream.retry_pause import doubled

OnFailure = Literal["retry", "dead-letter"]
FORMS = "sqlite:FILE, postgres:TABLE?..., cassandra:KEYSPACE.TABLE?..., a function (key) or a dict"
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
_decode = msgspec.json.Decoder().decode


def lookup(
    name: str,
    where: str | Callable[[str], Any] | Mapping[str, Any],
    *,
    key: str = "key",
    table: str | None = None,
    max_age: Duration = "1m",
    max_size: int = 10_000,
    timeout: Duration = "30s",
    on_failure: OnFailure = "retry",
) -> Lookup:
    """Declare a lookup.

    `where` is an address, a function `(key)` or a dict; `key` is the column to look up. `table` is
    for SQLite only; by default it is the lookup's name.
    """
    return Lookup(name, where, key, table, max_age, max_size, timeout, on_failure)


class Lookup:
    """A table that is read by key. Inert until the first read; each process has its own cache."""

    def __init__(
        self,
        name: str,
        where: str | Callable[[str], Any] | Mapping[str, Any],
        key: str,
        table: str | None,
        max_age: Duration,
        max_size: int,
        timeout: Duration,
        on_failure: OnFailure,
        is_known: bool = False,
    ) -> None:
        check_name(name, "lookup")
        at = f"lookup {name!r}"
        self._declared = (name, where, key, table, max_age, max_size, timeout, on_failure)
        self.name = name
        self.max_age = microseconds(max_age, f"{at}: max_age")
        self.timeout = microseconds(timeout, f"{at}: timeout") / SECOND
        if isinstance(max_size, bool) or not isinstance(max_size, int) or max_size < 1:
            raise DefinitionError(
                f"{at}: max_size must be a number of answers, 1 or more; got {max_size!r}"
            )
        if on_failure not in ("retry", "dead-letter"):
            raise DefinitionError(
                f"{at}: on_failure must be retry or dead-letter; got {on_failure!r}"
            )
        self.max_size = max_size
        self.on_failure = on_failure
        self._shown, self._backend = _backend(at, name, where, key, table, self.timeout)
        self._cache: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._rows = where if isinstance(where, Mapping) else None
        self._is_known = is_known

    @property
    def is_elsewhere(self) -> bool:
        """True if it reads a database."""
        return isinstance(self._declared[1], str)

    @property
    def shown(self) -> str:
        """A text with the table or function that it reads, and the greatest age of an answer."""
        return f"{self._shown}, at most {shown_duration(self.max_age)} old"

    def get(self, key: str) -> Any:
        """The row of a key as a dict, or the function's result; None if there is none."""
        if self._rows is not None:
            return _decode(self._encoded(key, self._rows.get(key)))
        if not self._is_known:
            raise FunctionError(
                f"lookup {self.name!r} is read, but no map declares it; only a map that declares a "
                "lookup may read it: @app.map(..., lookups=[people])"
            )
        kept = self._cache.get(key)
        now = time.monotonic()
        if kept is not None and (now - kept[0]) * SECOND <= self.max_age:
            self._cache.move_to_end(key)
            return _decode(kept[1])
        answer = self._cache[key] = self._asked(key, now + self.timeout)
        self._cache.move_to_end(key)
        while len(self._cache) > self.max_size:
            self._cache.popitem(last=False)
        return _decode(answer[1])

    @property
    def __modules__(self) -> tuple[str, ...]:
        """The module of its function, for sending the lookup to another process."""
        module = getattr(self._declared[1], "__module__", None)
        return (module,) if module else ()

    def known(self) -> None:
        """Note that a map declares this lookup. Called by the model."""
        self._is_known = True

    def given(self, rows: Mapping[str, Any] | None) -> None:
        """Answer from these rows, for a test; None: answer as declared."""
        where = self._declared[1]
        self._rows = rows if rows is not None else where if isinstance(where, Mapping) else None

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        """Pickles the declaration only: a worker gets no connections and no cached answers."""
        return type(self), (*self._declared, self._is_known)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lookup) and self._declared == other._declared

    def __hash__(self) -> int:
        return hash(self.name)

    def _asked(self, key: str, deadline: float) -> tuple[float, bytes]:
        """Returns the time of the request, which the row is at least as fresh as, and the row."""
        tries = 0
        while True:
            asked_at = time.monotonic()
            try:
                answer = self._backend.read(key)
            except Exception as error:
                self._backend.close()
                tries += 1
                pause = doubled(tries, FIRST_PAUSE, LONGEST_PAUSE)
                left = deadline - time.monotonic()
                if left <= pause:
                    reason = "; ".join(str(error).strip().splitlines()) or type(error).__name__
                    raise self._failure(
                        key,
                        f"{reason}; it was tried for {self.timeout:g} s; make sure that it can be "
                        "read, and start again",
                    ) from error
            else:
                return asked_at, self._encoded(key, answer)
            time.sleep(pause)

    def _encoded(self, key: str, answer: Any) -> bytes:
        """Returns the answer as JSON. Fails at once if that is impossible, since a retry would not
        help."""
        try:
            return encode_answer(answer)
        except CodecError as error:
            advice = "read a view that gives it as text" if self.is_elsewhere else "return text"
            raise self._failure(key, f"{error}; {advice}, and start again") from error

    def _failure(self, key: str, reason: str) -> FunctionError:
        refused = LookupRefused if self.on_failure == "dead-letter" else LookupFailed
        return refused(f"lookup {self.name!r} ({self._shown}), key {key!r}: {reason}")


def _backend(
    at: str, name: str, where: object, key: str, table: str | None, seconds: float
) -> tuple[str, Backend]:
    """The text that names the table or function, and its backend."""
    if isinstance(where, Mapping):
        return "a dict", FunctionBackend(where.get)
    if callable(where):
        check_arguments(where, ("key",), at)
        return f"{getattr(where, '__name__', 'function')}()", FunctionBackend(where)
    form, _, path = where.partition(":") if isinstance(where, str) else ("", "", "")
    form = {"postgresql": POSTGRES}.get(form, form)
    if form == "sqlite" and path:
        return f"sqlite:{path}", SqliteBackend(path, table or name, key, seconds)
    if form in ("postgres", "cassandra") and path:
        if table is not None:
            raise DefinitionError(f"{at}: table must be left out: the address names it")
        place, _, given = path.partition("?")
        options = database_options(form, place, dict(parse_qsl(given)), at)
        return options.shown, database_backend(options, key, seconds)
    raise DefinitionError(f"{at}: must be {FORMS}; got {where!r}")
