"""How a slate can be made of its events in any order: zero, lift and merge.

An update that says its algebra needs no function of its own: the slate of a key is the merge of
what every event is lifted to. Because `merge` is associative and commutative, events can be merged
where they are read, before they are sent to their key's shard: one key with most of the events
costs no more than many keys (Muppet, example 6, where the developer splits the key by hand).

What an algebra promises, and `millstream.testing.check_algebra` tries:

- `merge(a, merge(b, c)) == merge(merge(a, b), c)`, `merge(a, b) == merge(b, a)`, and `zero` changes
  nothing: as `write` shows them, or within the `error` that the algebra states;
- `merge` does not fail on what `lift`, `merge` and `read` give. It may change its first argument
  and return it; the second one it leaves alone;
- `unmerge(merge(a, b), b) == a`, where there is one;
- `read(write(a))` is `a`, and `write` gives what JSON can carry, the same for equal partials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.model.event import Event


def _as_it_is(partial: Any) -> Any:
    return partial


def _shown(value: Any) -> str:
    """An argument in words that are the same in every process: a function by its name."""
    if callable(value):
        owner = getattr(value, "__module__", "")
        return f"{owner}:{getattr(value, '__qualname__', type(value).__name__)}"
    return value if isinstance(value, str) else repr(value)


@dataclass(frozen=True, slots=True)
class Algebra:
    """An aggregate as functions over partials. Equal name and arguments mean the same algebra."""

    name: str
    zero: Callable[[], Any] = field(compare=False)
    """The partial of no event."""
    lift: Callable[[Event], Any] = field(compare=False)
    """The partial of one event; what it raises makes a dead letter of the event."""
    merge: Callable[[Any, Any], Any] = field(compare=False)
    unmerge: Callable[[Any, Any], Any] | None = field(default=None, compare=False)
    """Takes a partial out again, where that can be done."""
    write: Callable[[Any], Any] = field(default=_as_it_is, compare=False)
    """A partial as the slate that is stored and that readers see."""
    read: Callable[[Any], Any] = field(default=_as_it_is, compare=False)
    """The partial of a slate."""
    gather: Callable[[Sequence[str], Sequence[Any]], dict[str, Any]] | None = field(
        default=None, compare=False
    )
    """Many events at once: their keys and values to partials by key, as `lift` and `merge` would
    give; whatever it raises, they are then lifted one by one."""
    needs_values: bool = True
    """Whether `lift` and `gather` look at the values; if not, `gather` is given none, and nothing
    may fail: the values may never have been decoded, so there is nothing to make a letter of."""
    counted: Callable[[int], Any] | None = field(default=None, compare=False)
    """The partial of so many events, for an algebra that looks at nothing in them: they can then be
    counted in bulk, without a call for each key."""
    arguments: tuple[tuple[str, Any], ...] = ()
    error: str | None = None
    """What an approximate algebra says of its error; None: it is exact."""

    @property
    def words(self) -> str:
        """Its name and arguments in a few words, as in `sum of=amount`."""
        given = (f"{name}={_shown(value)}" for name, value in self.arguments)
        return " ".join([self.name, *given])

    @property
    def kind(self) -> str:
        """The kind of its slates: `aggregate:` and its words. Another algebra is another kind."""
        return f"aggregate:{self.words}"
