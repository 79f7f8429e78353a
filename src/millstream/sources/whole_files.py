"""Files that cannot be cut and are read from start to end: compressed files, and UTF-16.

DESIGN
------
Nothing is taken from a compressed file unless all of it can be unpacked. A torn file is then one
dead letter, and nothing counts twice if it is written again, complete and under a new name. So a
file is first unpacked to its end; a small one is kept in memory, a larger one is unpacked a second
time. Only its bytes decide if a file is complete, so a retried batch decides the same.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from millstream.errors import InputError
from millstream.model.letter_records import Bad
from millstream.model.text_form import TextForm
from millstream.sources.formats import InputSplit, given_up, is_gzip, shrunk
from millstream.sources.line_blocks import WIDE_BOMS

HELD_BYTES = 32 * 1024 * 1024
"""The largest unpacked file that is kept in memory between the two passes over it."""
_BROKEN = (EOFError, OSError, zlib.error)


def whole_file(file: IO[bytes], path: str, form: TextForm | None) -> IO[bytes] | Bad:
    """Opens a file from its start, unpacked and, if it was UTF-16, converted to UTF-8; returns a
    `Bad` if it cannot be read. It can be read a second time after `seek(0)`. With `form` None only
    UTF-8 can be read."""
    if not file.read(1):
        return given_up("its events")
    file.seek(0)
    unpacked: IO[bytes] = file
    if is_gzip(path):
        content = _unpacked(file)
        if isinstance(content, Bad):
            return content
        unpacked = content
    wrong = _wrong_mark(_head(unpacked), form)
    if wrong is not None:
        return wrong
    if form is None or not form.is_wide:
        return unpacked
    return io.BufferedReader(_Narrow(unpacked, form.encoding))  # type: ignore[type-var]


def unfit(file: IO[bytes], split: InputSplit, form: TextForm | None) -> list[Bad] | None:
    """Returns why a split cannot be read; None if it can. A wrong encoding is reported once for the
    file, by its first split; the others get an empty list. Raises InputError if the file has become
    shorter."""
    size = os.fstat(file.fileno()).st_size
    if split.stop is not None and size < split.stop:
        if size:
            raise shrunk(split.path, f"at least {split.stop} bytes", f"{size} bytes")
        return [given_up(f"at least {split.stop} bytes")]
    wrong = _wrong_mark(_head(file), form)
    if wrong is None and form is not None and form.is_wide:
        wrong = Bad(
            0,
            "",
            f"a file in {form.encoding} must be read whole, and this one was taken when its source "
            "had another encoding; rename it into the directory under a new name",
        )
    if wrong is None:
        return None
    return [wrong] if split.start == 0 else []


def _wrong_mark(head: bytes, form: TextForm | None) -> Bad | None:
    """Returns the `Bad` of a file that is marked as UTF-16 but declared otherwise. With `form`
    None, UTF-16 cannot be declared."""
    if head[:2] not in WIDE_BOMS or (form is not None and form.is_wide):
        return None
    advice = "write it as UTF-8" if form is None else "say encoding='utf-16', or write it as UTF-8"
    return Bad(
        0,
        "",
        "the file must be in UTF-8 or in the encoding that its source has; it begins with the "
        f"byte-order mark of UTF-16, and nothing of it was read: {advice}, then rename it into the "
        "directory under a new name",
    )


@contextmanager
def unchanged(path: str) -> Iterator[None]:
    """Raises InputError if a file that was complete can no longer be unpacked."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"file {path}: it must not change while it is read; it was complete a moment ago, but "
            f"is no longer ({error}); write files elsewhere, then rename them into the directory"
        ) from None


def _head(file: IO[bytes]) -> bytes:
    head = file.read(2)
    file.seek(0)
    return head


def _unpacked(file: IO[bytes]) -> IO[bytes] | Bad:
    held: list[bytes] = []
    size = 0
    try:
        with gzip.open(file) as unpacked:
            while block := unpacked.read(1 << 20):
                size += len(block)
                if size <= HELD_BYTES:
                    held.append(block)
                else:
                    held.clear()
    except _BROKEN as error:
        return Bad(
            0,
            "",
            f"a .gz file must be whole; this one is cut short or corrupt ({error}), and nothing of "
            "it was read: write it whole elsewhere, then rename it into the directory under a new "
            "name",
        )
    if size <= HELD_BYTES:
        return io.BytesIO(b"".join(held))
    file.seek(0)
    return gzip.open(file)  # type: ignore[return-value]


class _Narrow(io.RawIOBase):
    """Reads a file in UTF-16 as UTF-8. Invalid characters become bytes that are not UTF-8, so that
    only the lines with them are bad."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        super().__init__()
        self._file, self._encoding = file, encoding
        self._begin()

    def _begin(self) -> None:
        self._decode = codecs.getincrementaldecoder(self._encoding)("surrogatepass").decode
        self._ready = b""
        self._first, self._ended = True, False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        if offset or whence:
            raise io.UnsupportedOperation("only to the start")
        self._file.seek(0)
        self._begin()
        return 0

    def tell(self) -> int:
        return 0

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        while not self._ready and not self._ended:
            self._ready = self._next()
        part = self._ready[: len(buffer)]
        buffer[: len(part)] = part
        self._ready = self._ready[len(part) :]
        return len(part)

    def _next(self) -> bytes:
        block = self._file.read(1 << 16)
        self._ended = not block
        try:
            text = self._decode(block, not block)
        except UnicodeDecodeError:
            self._ended = True
            return b"\xff"  # the file ends within a character, or an invalid one follows
        if self._first and text:
            self._first = False
            text = text.removeprefix("\ufeff")
        return text.encode("utf-8", "surrogatepass")
