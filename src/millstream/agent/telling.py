"""What an agent says of its log to whoever watches it: each thing once."""

from __future__ import annotations

from pathlib import Path

from millstream.agent.dead_letters import DeadLetters
from millstream.agent.following import Follower
from millstream.agent.outbox import Say
from millstream.agent.reading import Reading
from millstream.model.place import shown_path
from millstream.windows.lateness import late_warning


class FileNotes:
    """Says which files are not read. One thread."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._not_read: set[str] = set()

    def of_files(self, follower: Follower) -> None:
        """Files that match and are not read."""
        not_read = {name: f"cannot be read: {why}" for name, why in follower.unreadable.items()}
        not_read |= dict.fromkeys(
            follower.left_alone, "is compressed in a way that is not known here, and not read"
        )
        for name in sorted(not_read.keys() - self._not_read):
            self._say(f"{name} {not_read[name]}")
        self._not_read |= not_read.keys()


class Telling:
    """Says what is new of a job. One thread."""

    def __init__(self, say: Say, node: str, folder: Path) -> None:
        """`folder` is where the dead letters are."""
        self._say, self._node, self._folder = say, node, folder
        self._warned = False

    def of_letters(self, letters: DeadLetters) -> None:
        """The first dead letter."""
        if letters.first is not None:
            path = shown_path(self._folder / "dead-letters.jsonl")
            self._say(
                f"the first dead letter is {letters.first}; it is in {path}, as all that follow"
            )
            letters.first = None

    def of_late(self, reading: Reading, before: int) -> None:
        """That much is late; `before` records were, in the panes before."""
        if self._warned:
            return
        late = before + reading.panes.counts.late
        said = late_warning(self._node, reading.making.read, late, reading.behind)
        if said is not None:
            self._warned = True
            self._say(f"warning: {said}")
