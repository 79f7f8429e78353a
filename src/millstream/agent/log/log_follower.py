"""Follows the log of a node: its files as they grow, are rotated, truncated and deleted.

A pattern names all files of the log: `/var/log/app/access.log*`. They are read one after the other,
the oldest first: by the time of the first line, if lines have times, otherwise by the time of the
last write. A file is not identified by its name (see `log_files`), so:

- A file renamed by rotation is read on from its offset, before the new file.
- A file copied and truncated (`copytruncate`) is read on in the copy, which is found beside it.
- A deleted file is held open and read to its end. It is closed after a minute without a write.
- A file that is truncated without a copy, or that is gone when the agent restarts, leaves a *gap*:
  its unread part is lost. The gap is reported, with the bytes that are known to be missing.

If several files have lines to read, such as two logs of one machine, they are read pane by pane
(`pane_of`): none runs ahead of the others by more than a pane, so that no file makes the lines of
another late. Of a compressed file, only the part that was not read before it was compressed is read
(`packed_files`). An unfinished last line is not read until it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path

from millstream.agent.log.first_seen_times import FirstSeenTimes
from millstream.agent.log.log_file_list import COMPRESSED, Listing, beside, id_at
from millstream.agent.log.log_files import (
    LineChunk,
    LogFile,
    LogGap,
    Mark,
    gap_after,
    gap_of,
    have_same_bytes,
    length_of,
)
from millstream.agent.log.multiline_records import Framing
from millstream.agent.log.packed_files import PackedFiles, TornFile, UnpackedFile
from millstream.agent.log.pane_order import PaneOrder, put_in_order
from millstream.agent.log.read_ranges import copy_among, places

LINGER = 60.0
"""Seconds of silence after which a file that was deleted or rotated away is closed."""
SILENCE = 1.0
"""Seconds without a write after which the last record of several lines counts as whole."""
HOLD = 10.0
"""A new file with the bytes of another counts as an unfinished copy while it grows, and for this
many seconds after."""
MOST_OPEN = 256
"""At most this many files are held open; the others are opened when their turn comes."""

FirstTime = Callable[[bytes], int | None]
"""Returns the time of a line, or its pane; None if the line has none."""


class LogFollower:
    """Reads a log's files. Used by one thread. `clock` is in seconds."""

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        clock: Callable[[], float],
        gap: Callable[[LogGap], None],
        first_time: FirstTime = lambda line: None,
        pane_of: FirstTime = lambda line: None,
        position: Sequence[Mark] = (),
        once: bool = False,
        stamps: FirstSeenTimes | None = None,
        scratch: Path | None = None,
        framing: Framing | None = None,
    ) -> None:
        """`position`: where an earlier follower stopped. `once`: the log no longer grows.
        `scratch`: folder to unpack compressed files in. `framing`: which lines form a record."""
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
        """Files that are empty or may be unfinished copies, and when each last grew."""
        self._away: dict[str, Mark] = {}
        """Marks of files that cannot be read now, to resume at when they can."""
        self.unreadable: dict[str, str] = {}
        """Names of files that could not be read, and why."""
        self._packed = PackedFiles(first_time, position, scratch, once=once)
        for mark in position:
            self._resume(mark)
        self.look()
        self._packed.started(self.position())
        if not position:
            for name in sorted(self.left_alone):
                why = "it is compressed, but not as .gz, .bz2 or .xz, or has no such name"
                gap(LogGap(name, 0, 0, why))
        if stamps is not None:
            here = {file.id for file in self._files} | self._away.keys()
            stamps.keep_only(here | self._listing.found().keys())

    @property
    def empty(self) -> bool:
        """True if no file was found yet."""
        return not self._files and not self._held

    @property
    def torn(self) -> set[str]:
        """Names of compressed files that have been incomplete for a while."""
        return self._packed.stuck(self._listing.packed, self._clock())

    @property
    def offsets(self) -> dict[str, int]:
        """The offset of each file, by its id."""
        return {file.id: file.offset for file in self._files}

    @property
    def missing(self) -> set[str]:
        """Ids of files that are held open and have no name any more."""
        return {file.id for file in self._files if file.missing}

    def is_read(self, file_id: str) -> bool:
        """True if the file with this id was read to its end."""
        return any(file.id == file_id and file.at_end for file in self._files)

    def look(self) -> None:
        """Look at all files, to find those that have grown or changed, and new ones."""
        for file_id in list(self._away):
            self._resume(self._away.pop(file_id))
        now, plain_files = self._clock(), self._listing.found()
        packed = self._listing.packed
        for file in list(self._files):
            plain = plain_files.pop(file.id, None)
            path = plain or packed.get(file.id)
            file.missing = path is None
            file.path = path or file.path
            self._look_at(file, now)
            if plain is not None and file not in self._files:  # a new file has its inode already
                plain_files[file.id] = plain
        for file_id in [held_id for held_id in self._held if held_id not in plain_files]:
            self._held.pop(file_id)[0].close()
        followed = {file.id for file in self._files} | self._away.keys()  # copies of others too
        for file_id, path in plain_files.items():
            if file_id not in followed and not self._meet(file_id, path, now):
                self.look()  # it was renamed just now; others may be older than those met so far
                return
        for file_id, path in packed.items():
            if file_id not in followed and self._packed.needs_look(file_id, path, now):
                self._meet_packed(file_id, path)
        self._files.sort(key=lambda file: file.order)

    def read(self, most: Mapping[str, int] | None = None) -> LineChunk | None:
        """Returns the next lines of the oldest file that has any; None if all is read for now.

        A file in `most` is read no farther than the offset given there.
        """
        ends = most or {}
        unread = (file for file in self._files if file.unread)
        waiting = [file for file in unread if file.offset < ends.get(file.id, inf)]
        panes = [self.order.next_pane(file) for file in waiting] if len(waiting) > 1 else [None]
        # Files whose next pane is not known go first, so that they hold up no other.
        turns = sorted(
            range(len(waiting)), key=lambda index: (panes[index] is not None, panes[index] or 0)
        )
        for turn, index in enumerate(turns):
            file = waiting[index]
            try:
                self._open(file)
                chunk = file.read()
            except FileNotFoundError:
                self._was_cut_off(file)
                return self.read(most)
            except TornFile:
                self._files.remove(file)
                if gap := self._packed.tear(file.id, file.path, self._clock()):
                    self._gap(gap)
                continue
            except OSError as error:  # read the others; this one is retried at the next call
                self._cannot_read(file.path, error)
                continue
            if chunk is not None and chunk.start + chunk.size > ends.get(file.id, inf):
                chunk = file.put_back(chunk, ends[file.id] - chunk.start)
            if chunk is not None:
                file.since = self._clock()
                known = [pane for other in turns[turn + 1 :] if (pane := panes[other]) is not None]
                return self.order.up_to(chunk, min(known)) if known else chunk
        return None

    def position(self, chunk: LineChunk | None = None, at: int = 0) -> list[Mark]:
        """Returns the marks of all files; for the chunk's file, `at` bytes into it."""
        marks = []
        for number, file in enumerate(self._files):
            later = number + 1 < len(self._files)
            if chunk is not None and file is chunk.file:
                before = b"" if chunk.too_long else chunk.data[max(0, at - 64) : at]
                marks.append(file.mark(done=False, offset=chunk.start + at, tail=before))
            else:
                marks.append(file.mark(done=later and file.at_end))
        return [*marks, *self._away.values(), *self._packed.marks]

    def again(self, start: Sequence[Mark], end: Sequence[Mark]) -> Iterator[LineChunk]:
        """Reads again what was read between two positions.

        Raises FileNotFoundError if it is not there any more.
        """
        for file, begin, until in places(self._files, start, end):
            yield from file.again(begin, until)

    def close(self) -> None:
        for file in [*self._files, *(file for file, _ in self._held.values())]:
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
        if file.missing or file is not self._files[-1]:  # the log goes on in another file
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
        """Look for the unread rest of a truncated file in a copy, then start the file again."""
        mark = file.mark(done=False)
        if file.longest and not self._resume_copy(mark, file.id, file.order):
            self._gap(gap_of(file, "it was truncated"))
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
        put_in_order(file, self._first_time)
        self._files.sort(key=lambda other: other.order)

    def _begins_again(self, file: LogFile) -> None:
        """Forget the times of its old records, which are not those of new ones."""
        self.order.forget(file)
        for stamps in self.stamps:
            stamps.begin_again(file.key)

    def _meet(self, file_id: str, path: Path, now: float) -> bool:
        """Follow a new file. One that may be an unfinished copy is held back first.

        False if its name leads to another file by now.
        """
        held = self._held.get(file_id)
        try:
            file = LogFile(path) if held is None else held[0]
            before = file.size
            file.look()
        except FileNotFoundError:
            return False
        except OSError as error:
            self._cannot_read(path, error)
            return True
        if file.id != file_id:
            file.close()
            return False
        if file.head.startswith(COMPRESSED):
            self.left_alone.add(str(path))
            file.close()
            return True
        since = now if held is None or file.size != before else held[1]
        others = (other for other in self._files if other.id != file.id)
        growing = not file.size or (
            now - since < HOLD and any(have_same_bytes(file, other) for other in others)
        )
        if growing and not self._once:
            self._held[file.id] = (file, since)
            return True
        self._held.pop(file.id, None)
        self._follow(file, now)
        return True

    def _cannot_read(self, path: Path, error: OSError) -> None:
        self.unreadable[str(path)] = error.strerror or str(error)

    def _follow(self, file: LogFile, now: float) -> None:
        file.since, file.framing = now, self._framing
        if self._once:
            file.end()
        put_in_order(file, self._first_time)
        self._files.append(file)
        if sum(other.is_open for other in self._files) > MOST_OPEN:
            file.close()

    def _open(self, file: LogFile) -> None:
        """Open a file. If too many are open, close those read to their end; they are reopened
        later."""
        if file.is_open:
            return
        opened = [other for other in self._files if other.is_open]
        for other in opened if len(opened) >= MOST_OPEN else ():
            if other.at_end and other is not self._files[-1]:
                other.close()
        file.reopen()

    def _meet_packed(self, file_id: str, path: Path) -> None:
        """Follow a new compressed file, unless all of it was read before it was compressed."""
        try:
            known = {file.id: file for file in self._files}
            unread = self._packed.meet(file_id, path, self.position(), known, self._clock())
        except OSError as error:
            self._cannot_read(path, error)
            return
        if isinstance(unread, LogGap):
            self._gap(unread)
        elif unread is not None:
            self._follow(unread, self._clock())

    def _resume(self, mark: Mark) -> None:
        """Resume a file, or a copy of it, at a mark. Reports a gap if neither is there."""
        neighbours = {id_at(path): path for path in beside(mark.name)}
        path = self._listing.found().get(mark.id) or neighbours.get(mark.id)
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
        elif mark.size:
            why = "it was truncated" if str(path) == mark.name else "it is gone"
            self._gap(gap_after(mark, f"{why} while the agent was not there"))

    def _resume_copy(
        self, mark: Mark, not_this: str, order: tuple[int, int, str] | None = None
    ) -> bool:
        """Resume at a mark in a copy of the marked file. False if there is no copy.

        If the file was read to its end (`mark.done`), a copy must only be recognised, so that it is
        not read anew. Files that the patterns do not name are then not searched: they are not read
        anyway, and may be more than a copy, such as a merged log. Otherwise they come last.
        """
        if not length_of(mark.head):
            return False
        known = {file.id: file for file in self._files}
        copy = copy_among(self._listing.found().values(), mark, known, not_this)
        if copy is None and not mark.done:
            copy = self._packed.copy_of(mark, self._listing.packed, known)
            copy = copy or copy_among(beside(mark.name), mark, known, not_this)
        if copy is not None and copy.id not in known:
            if copy.id in self._held:
                self._held.pop(copy.id)[0].close()
            self._follow(copy, self._clock())
            copy.order = order or copy.order
            for stamps in self.stamps:
                stamps.also(mark.id + copy.key.removeprefix(copy.id), copy.key)
        return copy is not None
