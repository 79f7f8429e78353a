"""The meaning of slate changes: compares the reference's slates at the ends of batches.

The reference has no batches of its own; every `take` ends one. The changes of a batch are the
slates, and entries of tables, that differ from those at its beginning. A run on Spark may publish
more: a slate that was touched but not changed, and the deletion of a slate that was created in the
same batch. Applied in order, both give the slates as of each batch, and the same slates in the end,
except for expired ones, which the reference keeps.
"""

from __future__ import annotations

from millstream.model.slate import Table
from millstream.reference import Reference
from millstream.slate_changes import SlateChange

Held = dict[tuple[str, str], tuple[bytes, int]]
"""A slate's bytes and its last update, by key and entry."""


class ReferenceChanges:
    """The changes of one update's slates, batch by batch."""

    def __init__(self, reference: Reference, update: str) -> None:
        self._reference = reference
        self._update = update
        self._table = reference.workflow.update(update).slate is Table
        self._held: Held = {}
        self._batch = -1

    def take(self) -> list[SlateChange]:
        """Ends a batch and returns its changes, in order of their keys."""
        self._batch += 1
        before, self._held = self._held, self._now()
        changed = [name for name in self._held if self._held[name] != before.get(name)]
        gone = [name for name in before if name not in self._held]
        changes = [SlateChange(*name, *self._held[name], self._batch) for name in changed]
        for key, entry in gone:
            ts = self._last_of(key, before[key, entry][1])
            changes.append(SlateChange(key, entry, None, ts, self._batch))
        return sorted(changes, key=lambda change: (change.key, change.entry))

    def _now(self) -> Held:
        held: Held = {}
        for (name, key), slate in self._reference.slates.items():
            if name != self._update:
                continue
            for entry, value in slate.entries.items() if self._table else [("", slate.data)]:
                held[key, entry] = value, slate.last
        return held

    def _last_of(self, key: str, known: int) -> int:
        """Returns the last update of a slate that has lost an entry or was deleted."""
        owner = self._update, key
        slate = self._reference.slates.get(owner)
        return self._reference.forgotten.get(owner, known) if slate is None else slate.last
