"""Limits the total size of answers that clients have not read, and cuts off the worst clients.

One answer may have several megabytes, and a client may leave it unread until it is cut off for that
(`connection`). Hundreds of such clients would fill the memory before. So all unread answers
together have at most about `most` bytes. Beyond that, the clients that have left the most bytes
unread for the longest, and for more than `GRACE` seconds, are cut off one after the other. Until
there is room, no further large answer is created: streams wait, and other requests are told to try
again. A client that reads its answers is hardly ever counted here.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

MOST_UNREAD = 32 << 20
LARGE = 256 << 10
"""An answer of more bytes than this needs room."""
GRACE = 1.0


class Recipient(Protocol):
    """A client that was sent an answer."""

    def unread_bytes(self) -> int: ...

    def cut_off(self) -> None: ...


R = TypeVar("R", bound=Recipient)


class UnreadAnswers(Generic[R]):
    """Counts unread bytes by recipient. Used on the event loop."""

    def __init__(self) -> None:
        self._sizes: dict[R, int] = {}
        self._since: dict[R, float] = {}
        self._total = 0

    def note(self, recipient: R, size: int, now: float) -> None:
        """Notes that `size` bytes now wait for a recipient."""
        self._total += size - self._sizes.get(recipient, 0)
        self._sizes[recipient] = size
        self._since.setdefault(recipient, now)

    def forget(self, recipient: R) -> None:
        """Removes a recipient that has disconnected, or has read everything."""
        self._total -= self._sizes.pop(recipient, 0)
        self._since.pop(recipient, None)

    def has_room(self, now: float) -> bool:
        """True if a further large answer may be created; cuts recipients off to make room."""
        if self._total > MOST_UNREAD:
            self._look()
            while self._total > MOST_UNREAD and self._cut_off_worst(now):
                pass
        return self._total <= MOST_UNREAD

    def _look(self) -> None:
        """Updates all counts: most recipients have read on since."""
        for recipient in list(self._sizes):
            size = recipient.unread_bytes()
            if size:
                self._total += size - self._sizes[recipient]
                self._sizes[recipient] = size
            else:
                self.forget(recipient)

    def _cut_off_worst(self, now: float) -> bool:
        late = [recipient for recipient, since in self._since.items() if now - since > GRACE]
        if not late:
            return False
        worst = max(
            late, key=lambda recipient: self._sizes[recipient] * (now - self._since[recipient])
        )
        self.forget(worst)
        worst.cut_off()
        return True
