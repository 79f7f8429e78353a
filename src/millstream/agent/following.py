"""Following the log of a node: its files as they grow, are rotated, cut off and deleted.

A pattern names the log, all of its files: `/var/log/app/access.log*`. They are read one after the
other, the oldest first: by the time of its first line, if lines have times, else by when it was
written last. What is known of a file does not hang on its name (see `files`), so:

- renamed, by rotation: it goes on where it was, and the rest of it is read before the new file
- copied and cut off (`copytruncate`): the rest is read from the copy, found beside it
- deleted: it is read to its end, for as long as it is held open; a minute of silence ends it
- cut off without a copy, or gone when the agent starts again: what was in it that was not read
  cannot be known. That is a *gap*: it is told, with the bytes that are known to be missing.

Several that have lines to read, such as two logs of one machine, are read pane by pane (`pane_of`):
none runs ahead of the others by more than that, so that no line is late for another's sake. Of
compressed files that is read which was not read before (`packed_files`). A last line without its
end waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from millstream.agent.files import Chunk, Gap, LogFile, Mark, gap_of, have_same_bytes, length_of
from millstream.agent.framing import Framing
from millstream.agent.listing import Listing, beside, id_at
from millstream.agent.packed_files import PackedFiles, TornFile, UnpackedFile, rotation_number
from millstream.agent.pane_order import PaneOrder
from millstream.agent.seeking import places
from millstream.agent.stamping import Stamps

LINGER = 60.0
"""Seconds of silence after which a file that was deleted or rotated away is closed."""
SILENCE = 1.0
"""Seconds without a line after which the last record of a file is whole, if it may have several."""
HOLD = 10.0
"""Seconds that a file which has all that was read of another may be a copy of it in the making."""
MOST_OPEN = 256
"""Files that are held open; of very many, the others are opened when their turn comes."""

FirstTime = Callable[[bytes], int | None]
"""The time of a line, or the pane that it is in; None if that cannot be said."""


class Follower:
    """Reads a log's files. One thread; `clock` is in seconds."""

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        clock: Callable[[], float],
        gap: Callable[[Gap], None],
        first_time: FirstTime = lambda line: None,
        pane_of: FirstTime = lambda line: None,
        position: Sequence[dict[str, Any]] | None = None,
        once: bool = False,
        stamps: Stamps | None = None,
        scratch: Path | None = None,
        framing: Framing | None = None,
    ) -> None:
        """`position` is where an earlier one was; `once`: nothing is written any more; `scratch`:
        where compressed files are unpacked; `framing`: which lines are one record."""
        self._listing = Listing(patterns)
        self.left_alone = self._listing.left_alone
        """Names of compressed files that cannot be read."""
        self._clock = clock
        self._gap = gap
        self._first_time = first_time
        self._once, self._framing = once, framing
        self.stamps = [] if stamps is None else [stamps]
        """Journals of the times of lines, one for each job that needs them."""
        self._files: list[LogFile] = []
        self.order = PaneOrder(pane_of)
        self._held: dict[str, tuple[LogFile, float]] = {}
        """Files that may be copies in the making, since when."""
        self._away: dict[str, Mark] = {}
        """Of files that cannot be read now: where they go on when they can."""
        self.unreadable: dict[str, str] = {}
        """Names of files that could not be read, and why."""
        marks = [Mark(**mark) for mark in position or ()]
        self._packed = PackedFiles(first_time, marks, scratch, once=once)
        for mark in marks:
            self._resume(mark)
        self.look()
        self._packed.started(self._marks())
        if stamps is not None:
            here = {file.id for file in self._files} | self._away.keys()
            stamps.keep_only(here | self._listing.found().keys())

    @property
    def empty(self) -> bool:
        """Whether no file was found yet."""
        return not self._files and not self._held

    @property
    def offsets(self) -> dict[str, int]:
        """By what a file is: how far it was read."""
        return {file.id: file.offset for file in self._files}

    @property
    def missing(self) -> set[str]:
        """Files that are held open, and have no name any more."""
        return {file.id for file in self._files if file.missing}

    def is_read(self, one: str) -> bool:
        """Whether a file was read to its end."""
        return any(file.id == one and file.at_end for file in self._files)

    def look(self) -> None:
        """See what became of the files, and which are new."""
        for one in list(self._away):
            self._resume(self._away.pop(one))
        now, found = self._clock(), self._listing.found()
        packed = self._listing.packed
        for file in list(self._files):
            path = found.pop(file.id, None) or packed.get(file.id)
            file.missing = path is None
            file.path = path or file.path
            self._look_at(file, now)
            if path is not None and file not in self._files:  # its number is a new file's by now
                found[file.id] = path
        for one in [one for one in self._held if one not in found]:
            self._held.pop(one)[0].close()
        followed = {file.id for file in self._files}  # copies that go on for another, too
        followed |= self._away.keys()
        for one, path in found.items():
            if one not in followed and not self._meet(one, path, now):
                self.look()  # it was renamed just now, and others may be older than those met
                return
        for one, path in packed.items():
            if one not in followed and self._packed.needs_look(one, path, now):
                self._meet_packed(one, path)
        self._files.sort(key=lambda file: file.order)

    def read(self, most: Mapping[str, int] | None = None) -> Chunk | None:
        """The next lines of the oldest file that has any; None if all is read for now. No file of
        `most` is read farther than it says."""
        ends = most or {}
        waiting = [one for one in self._files if one.unread and one.offset < ends.get(one.id, inf)]
        panes = [self.order.next_pane(file) for file in waiting] if len(waiting) > 1 else [None]
        # What does not say its pane goes first, so that it holds up nobody.
        inorder = sorted(
            range(len(waiting)), key=lambda one: (panes[one] is not None, panes[one] or 0)
        )
        for turn, number in enumerate(inorder):
            file = waiting[number]
            try:
                if not file.is_open:
                    self._close_some()
                    file.reopen()
                chunk = file.read()
            except FileNotFoundError:
                self._was_cut_off(file)
                return self.read(most)
            except TornFile:
                self._files.remove(file)
                if gap := self._packed.tear(file.id, file.path, self._clock()):
                    self._gap(gap)
                continue
            except OSError as error:  # the others go on, and it is tried again
                self._cannot_read(file.path, error)
                continue
            if chunk is not None and chunk.start + chunk.size > ends.get(file.id, inf):
                chunk = file.put_back(chunk, ends[file.id] - chunk.start)
            if chunk is not None:
                file.since = self._clock()
                others = [panes[one] for one in inorder[turn + 1 :]]
                known = [pane for pane in others if pane is not None]
                return self.order.up_to(chunk, min(known)) if known else chunk
        return None

    def position(self, chunk: Chunk | None = None, at: int = 0) -> list[dict[str, Any]]:
        """Where all files were read to, as JSON; of the chunk's file, `at` bytes into the chunk."""
        return [mark.described() for mark in self._marks(chunk, at)]

    def _marks(self, chunk: Chunk | None = None, at: int = 0) -> list[Mark]:
        marks = []
        for number, file in enumerate(self._files):
            later = number + 1 < len(self._files)
            if chunk is not None and file is chunk.file:
                before = b"" if chunk.too_long else chunk.data[max(0, at - 64) : at]
                marks.append(file.mark(done=False, offset=chunk.start + at, tail=before))
            else:
                marks.append(file.mark(done=later and file.at_end))
        return [*marks, *self._away.values(), *self._packed.marks]

    def again(
        self, start: Sequence[dict[str, Any]], end: Sequence[dict[str, Any]]
    ) -> Iterator[Chunk]:
        """What was read between two positions; FileNotFoundError if it is not there any more."""
        for file, begin, until in places(self._files, start, end):
            yield from file.again(begin, until)

    def close(self) -> None:
        for file in [*self._files, *(held for held, _ in self._held.values())]:
            file.close()

    def _look_at(self, file: LogFile, now: float) -> None:
        before = file.size
        try:
            whole = file.look()
        except FileNotFoundError:  # closed, and gone
            self._let_go(file)
            return
        except OSError as error:
            self._cannot_read(file.path, error)
            return
        if not whole:
            self._was_cut_off(file)
        elif file.size != before:
            file.since = now
        if now - file.since >= SILENCE:
            file.is_silent()
        if now - file.since < LINGER or file.unread:
            return
        if file.missing or file is not self._files[-1]:  # the log went on in another
            if not file.at_end:
                file.end()
            elif file.missing or isinstance(file, UnpackedFile):
                self._let_go(file)
            else:
                file.close()

    def _let_go(self, file: LogFile) -> None:
        self._files.remove(file)
        self._begins_again(file)
        file.close()
        if file.at_end:
            self._packed.settle(file.mark(done=True))
        elif not self._resume_copy(file.mark(done=False), file.id, file.order):
            self._gap(gap_of(file, "it was deleted before it was read"))

    def _was_cut_off(self, file: LogFile) -> None:
        """The rest of what was in it may be in a copy; then it begins again."""
        mark = file.mark(done=False)
        if file.longest and not self._resume_copy(mark, file.id, file.order):
            self._gap(gap_of(file, "it was cut off"))
        try:
            if not file.is_open:
                file.reopen()
        except OSError:
            self._files.remove(file)
            self._begins_again(file)
            return
        self._begins_again(file)
        file.begin_again()
        self._begins_again(file)
        self._put_in_order(file)
        self._files.sort(key=lambda one: one.order)

    def _begins_again(self, file: LogFile) -> None:
        """What is known of the times of its records is not of those that it will have."""
        self.order.forget(file)
        for stamps in self.stamps:
            stamps.begin_again(file.key)

    def _meet(self, one: str, path: Path, now: float) -> bool:
        """A file that is new: a copy in the making is held back, until it is known what it is.

        False if its name leads to another file by now.
        """
        held = self._held.get(one)
        try:
            file = LogFile(path) if held is None else held[0]
            before = file.size
            file.look()
        except FileNotFoundError:
            return False
        except OSError as error:
            self._cannot_read(path, error)
            return True
        if file.id != one:
            file.close()
            return False
        since = now if held is None or file.size != before else held[1]
        growing = not file.size or (now - since < HOLD and self._may_be_copy(file))
        if growing and not self._once:
            self._held[file.id] = (file, since)
            return True
        self._held.pop(file.id, None)
        self._follow(file, now)
        return True

    def _cannot_read(self, path: Path, error: OSError) -> None:
        self.unreadable[str(path)] = error.strerror or str(error)

    def _may_be_copy(self, file: LogFile) -> bool:
        """Whether it has the bytes of a file that we follow, as far as either was read."""
        return any(have_same_bytes(file, other) for other in self._files if other.id != file.id)

    def _follow(self, file: LogFile, now: float) -> None:
        file.since, file.framing = now, self._framing
        if self._once:
            file.end()
        self._put_in_order(file)
        self._files.append(file)
        if sum(one.is_open for one in self._files) > MOST_OPEN:
            file.close()

    def _close_some(self) -> None:
        """If too many are open, close those that are read; one that grows is opened again."""
        held = [one for one in self._files if one.is_open]
        for one in held if len(held) >= MOST_OPEN else ():
            if one.at_end and one is not self._files[-1]:
                one.close()

    def _put_in_order(self, file: LogFile) -> None:
        line = file.first_line()
        at = file.first = None if line is None else self._first_time(line)
        number = -rotation_number(file.path.name)  # log.2 is older than log.1
        file.order = (file.written // 1_000 if at is None else at, number, str(file.path))

    def _meet_packed(self, one: str, path: Path) -> None:
        """A compressed file that is new: read it from where it was read to, if it is to be."""
        try:
            known = {file.id: file for file in self._files}
            met = self._packed.meet(one, path, self._marks(), known, self._clock())
        except OSError as error:
            self._cannot_read(path, error)
            return
        if isinstance(met, Gap):
            self._gap(met)
        elif met is not None:
            self._follow(met, self._clock())

    def _resume(self, mark: Mark) -> None:
        """Go on with a file where a mark says, if it is still there, or a copy of it."""
        near = {id_at(path): path for path in beside(mark.name)}
        path = self._listing.found().get(mark.id) or near.get(mark.id)
        if path is not None:
            try:
                file = LogFile(path, mark.offset)
            except FileNotFoundError:
                self._resume(mark)  # it was renamed just now
                return
            except OSError as error:
                self._cannot_read(path, error)
                self._away[mark.id] = mark
                return
            if file.id != mark.id:
                file.close()
                self._resume(mark)
                return
            if file.is_at(mark):
                self._follow(file, self._clock())
                return
            self._begins_again(file)
            file.close()
        if self._resume_copy(mark, mark.id):
            return
        if mark.done:
            self._packed.settle(mark)
            return
        if mark.size:
            why = "it was cut off" if str(path) == mark.name else "it is gone"
            missing = mark.size - mark.offset
            self._gap(Gap(mark.name, mark.offset, missing, f"{why} while the agent was not there"))

    def _resume_copy(
        self, mark: Mark, not_this: str, order: tuple[int, int, str] | None = None
    ) -> bool:
        """Go on with a copy of the file that a mark is of, in its place."""
        if not length_of(mark.head):
            return False
        known = {file.id: file for file in self._files}
        for path in [*self._listing.found().values(), *beside(mark.name)]:
            one = id_at(path)
            if one in known and one != not_this and not mark.offset and known[one].is_at(mark):
                return True  # nothing of it was read, so that the copy is a file like any other
            if one in known or one == not_this:
                continue
            try:
                file = LogFile(path, mark.offset)
            except OSError:
                continue
            if file.id == one and file.is_at(mark):
                if file.id in self._held:
                    self._held.pop(file.id)[0].close()
                self._follow(file, self._clock())
                file.order = order or file.order
                self._also_stamped(mark, file)
                return True
            file.close()
        copy = None if mark.done else self._packed.copy_of(mark, self._listing.packed, known)
        if copy is not None:
            self._follow(copy, self._clock())
            copy.order = order or copy.order
            self._also_stamped(mark, copy)
        return copy is not None

    def _also_stamped(self, mark: Mark, file: LogFile) -> None:
        for stamps in self.stamps:
            stamps.also(mark.id + file.key.removeprefix(file.id), file.key)
