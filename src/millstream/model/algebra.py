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
    """Whether `lift` and `gather` look at the values; if not, `gather` is given none."""
    arguments: tuple[tuple[str, Any], ...] = ()
    error: str | None = None
    """What an approximate algebra says of its error; None: it is exact."""
