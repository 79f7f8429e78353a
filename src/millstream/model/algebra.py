"""Algebras: building a slate from its events in any order, with zero, lift and merge.

An update with an algebra needs no function of its own: each event is lifted to a partial, and the
slate of a key is the merge of its partials. Because `merge` is associative and commutative, events
can be merged where they are read, before they are sent to their key's shard: one key with most of
the events costs no more than many keys (Muppet, example 6, where the developer splits the key by
hand).

An algebra promises the following, and `millstream.testing.check_algebra` tests it:

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
    """Returns an argument as text that is the same in every process: a function by its name."""
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
    """The partial of one event; if it raises, the event becomes a dead letter."""
    merge: Callable[[Any, Any], Any] = field(compare=False)
    unmerge: Callable[[Any, Any], Any] | None = field(default=None, compare=False)
    """Removes a merged partial again; None if the algebra cannot."""
    write: Callable[[Any], Any] = field(default=_as_it_is, compare=False)
    """Turns a partial into the slate that is stored and that readers see."""
    read: Callable[[Any], Any] = field(default=_as_it_is, compare=False)
    """Turns a stored slate back into a partial."""
    gather: Callable[[Sequence[str], Sequence[Any]], dict[str, Any]] | None = field(
        default=None, compare=False
    )
    """Lifts many events at once: takes their keys and values, returns partials by key, equal to
    what `lift` and `merge` would give. If it raises, the events are lifted one by one."""
    needs_values: bool = True
    """True if `lift` and `gather` read the values. If not, `gather` is given none and nothing may
    fail: the values may never have been decoded, so no dead letter could be made of them."""
    counted: Callable[[int], Any] | None = field(default=None, compare=False)
    """The partial of a number of events, for an algebra that ignores their contents: they can then
    be counted in bulk, without a call for each key."""
    number: str | None = field(default=None, compare=False)
    """The field of the value that is all that `lift` and `gather` read, if whole numbers in it can
    be added up in bulk, with `totalled`."""
    totalled: Callable[[int, int], Any] | None = field(default=None, compare=False)
    """The partial of a number of events in which `number` is a whole number, given its total."""
    whole: str | None = field(default=None, compare=False)
    """The only field of the slate of a partial that is an int, which is then stored as it is; merge
    adds ints. So they can be merged in bulk."""
    arguments: tuple[tuple[str, Any], ...] = ()
    error: str | None = None
    """The error bound that an approximate algebra states; None: it is exact."""

    @property
    def words(self) -> str:
        """The name and arguments, as in `sum of=amount`."""
        arguments = (f"{name}={_shown(value)}" for name, value in self.arguments)
        return " ".join([self.name, *arguments])

    @property
    def kind(self) -> str:
        """The kind of its slates: `aggregate:` and `words`. Another algebra is another kind."""
        return f"aggregate:{self.words}"
