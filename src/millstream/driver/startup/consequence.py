"""A consequence of a changed application for its store: one sentence, which `plan` shows."""

from __future__ import annotations

from typing import Literal

import msgspec

Subject = Literal["update", "slates", "source", "stream", "store"]
State = Literal[
    "kept",
    "renamed",
    "new",
    "orphaned",
    "retired",
    "fit",
    "migrate",
    "unfit",
    "dropped",
    "gone",
    "refused",
]


class Consequence(msgspec.Struct, frozen=True):
    """One consequence of the current application for the store.

    A start refuses a loss, unless it is accepted; one that is `refused` cannot be accepted.
    """

    subject: Subject
    name: str
    state: State
    text: str
    loss: bool = False
