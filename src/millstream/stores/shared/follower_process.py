"""Runs a follower in a process of its own, so that applying batches does not slow down readers.

The child (see `child_process`) reports the folder of the mirror once it can be read.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import msgspec

from millstream.child_process import ChildProcess, answer_parent, order_from_parent
from millstream.errors import MillstreamError, PlaceError, StoreError
from millstream.places.place import Place
from millstream.places.place_address import place_at
from millstream.stores.shared.commit_log import CommitLog
from millstream.stores.shared.follower import StoreFollower
from millstream.stores.shared.mirror_folder import held_folder, mirror_folder
from millstream.stores.shared.store_mirror import StoreMirror

PAUSE = 1.0
"""Seconds before a follower that has ended is started again."""
LOOK_SECONDS = 0.2


Beside = Callable[[Place, Path], AbstractContextManager[object]]
"""Follows other data of a place into the folder of a mirror, until the context is left."""


def _nothing_beside(place: Place, folder: Path) -> AbstractContextManager[object]:
    return nullcontext()


class FollowOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order for a follower: what to follow, and into which folder."""

    address: str
    cache: str = ""
    shards: list[int] | None = None
    folder: str = ""
    """The folder of the mirror; empty: any free one."""
    wait: bool = False
    """True to wait for a store that does not exist yet."""
    module: str = "millstream.stores.shared.follower_process"
    """The module whose `main` the child runs: this one, or one that follows more."""


class FollowTold(msgspec.Struct, frozen=True):
    """The child's answer: the folder of the mirror, or why there is none."""

    folder: str = ""
    error: str = ""


class FollowerChild:
    """A follower in a child process, which is restarted if it ends."""

    def __init__(self, order: FollowOrder, say: Callable[[str], None]) -> None:
        self._order = order
        self._say = say
        self._stopped = threading.Event()
        self._process = self._started()
        self.folder = Path()

    @classmethod
    def start(
        cls, order: FollowOrder, say: Callable[[str], None], stop: threading.Event | None = None
    ) -> FollowerChild | None:
        """Start a follower and wait until its mirror can be read; None if `stop` is set first."""
        child = cls(order, say)
        answer = child._told(stop or threading.Event())
        if answer is None:
            return None
        child.folder = Path(answer.folder)
        child._order = msgspec.structs.replace(order, folder=answer.folder)
        threading.Thread(target=child._look_after, name="follower", daemon=True).start()
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End the child, and wait for its end."""
        self._stopped.set()
        self._process.end()

    def _started(self) -> ChildProcess:
        return ChildProcess(self._order.module, msgspec.json.encode(self._order))

    def _told(self, stop: threading.Event) -> FollowTold | None:
        """Waits for the child's answer; None if `stop` is set first."""
        try:
            answer = self._process.answer(FollowTold, stop, math.inf)
            if answer is None and not self._process.ended:
                self._process.end()
                return None
            if answer is None:
                raise StoreError(
                    f"{self._order.address}: the follower ended with code {self._process.wait()} "
                    "before the mirror could be read; see above"
                )
            if answer.error:
                raise StoreError(answer.error)
            return answer
        except BaseException:
            self._process.end()
            raise

    def _look_after(self) -> None:
        while True:
            code = self._process.wait()
            if self._stopped.wait(PAUSE):
                return
            self._say(f"the follower has ended (exit code {code}); starting it again")
            self._process = self._started()
            try:
                self._told(self._stopped)
            except MillstreamError as error:
                self._say(f"the follower cannot be started again: {error}")


def follow(
    order: FollowOrder,
    stop: threading.Event,
    ready: Callable[[Path], None],
    beside: Beside = _nothing_beside,
) -> None:
    """Follow until `stop` is set. Calls `ready` with the folder once it can be read.

    `beside` follows other data of the place meanwhile.
    """
    place = place_at(order.address)
    if order.wait and not _is_there(place, stop):
        return
    with (
        held_folder(Path(order.folder))
        if order.folder
        else mirror_folder(order.address, order.cache, order.shards) as folder,
        closing(StoreMirror(place, folder, shards=order.shards)) as mirror,
        beside(place, folder),
    ):
        follower = StoreFollower(place, mirror)
        follower.step()
        ready(folder)
        follower.run(stop)


def _is_there(place: Place, stop: threading.Event) -> bool:
    """Wait for the first commit; False if `stop` is set first."""
    log = CommitLog(place, 0.0)
    while not stop.is_set():
        try:
            if log.newest() is not None:
                return True
        except PlaceError:
            pass  # the driver reports this
        stop.wait(LOOK_SECONDS)
    return False


def main(beside: Beside = _nothing_beside) -> int:
    """The main function of the child process."""
    stop = threading.Event()
    line = order_from_parent(stop)
    if not line:
        return 0
    try:
        order = msgspec.json.decode(line, type=FollowOrder)
        follow(order, stop, lambda folder: answer_parent(FollowTold(folder=str(folder))), beside)
    except MillstreamError as error:
        answer_parent(FollowTold(error=str(error)))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
