"""Follows logs in a place into mirrors, each in a thread of its own.

A thread polls for the next piece every `LOOK_SECONDS` after something new came, and less and less
often while nothing comes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from millstream.errors import MillstreamError, PlaceError
from millstream.log.mirror import LogMirror
from millstream.log.stream_logs import PlaceLogs
from millstream.places.place import Place, folders_in

LOOK_SECONDS = 0.05
"""Seconds between two polls of a log that has just had something new."""
IDLE_SECONDS = 0.25
"""Seconds between two polls of a log that has had nothing new for a while."""
TROUBLE_SECONDS = 2.0
RETAIN_SECONDS = 600.0
"""Seconds between two removals of segments that the log no longer keeps."""
STREAMS_SECONDS = 5.0
"""Seconds between two checks for new logs."""


def follow_log(mirror: LogMirror, stop: threading.Event, say: Callable[[str], None]) -> None:
    """Follow a log until `stop` is set. Retries while the place does not answer."""
    pause, trouble, since_retained = LOOK_SECONDS, "", 0.0
    while not stop.wait(pause):
        since_retained += pause
        try:
            new = mirror.follow()
            if since_retained > RETAIN_SECONDS:
                since_retained = 0.0
                mirror.retain()
        except MillstreamError as error:
            if str(error) != trouble:
                trouble = str(error)
                say(f"{trouble}; it is retried")
            pause = TROUBLE_SECONDS
            continue
        trouble = ""
        pause = LOOK_SECONDS if new else min(IDLE_SECONDS, 1.2 * pause)


@contextmanager
def logs_followed(place: Place, folder: Path) -> Iterator[None]:
    """Follow all logs of a store into subfolders of a folder, until the context is left.

    Threads bring them up to date; the caller does not wait for that. Nothing is said of failures:
    they are retried.
    """
    stop = threading.Event()
    threads: dict[str, threading.Thread] = {}

    def follow(stream: str) -> None:
        while not stop.is_set():
            try:
                mirror = LogMirror(place, stream, folder / stream)
            except MillstreamError:
                stop.wait(TROUBLE_SECONDS)
                continue
            try:
                follow_log(mirror, stop, lambda sentence: None)
            finally:
                mirror.close()

    def look() -> None:
        while not stop.is_set():
            try:
                for stream in folders_in(place, "logs/"):
                    if stream not in threads:
                        threads[stream] = threading.Thread(
                            target=follow, args=(stream,), name=f"follow {stream}", daemon=True
                        )
                        threads[stream].start()
            except PlaceError:
                pass  # the follower of the commits reports this
            stop.wait(STREAMS_SECONDS)

    looking = threading.Thread(target=look, name="follow logs", daemon=True)
    looking.start()
    try:
        yield
    finally:
        stop.set()
        for thread in (looking, *threads.values()):
            thread.join()


def bring_logs(
    place: Place, folder: Path, streams: Iterable[str], record: int | None = None
) -> None:
    """Bring mirrors of some logs up to date, once; a new mirror begins at `record`."""
    for stream in streams:
        with closing(LogMirror(place, stream, folder / stream, record=record)) as mirror:
            mirror.retain()


@contextmanager
def mirrors_followed(
    logs: PlaceLogs, streams: Iterable[str], say: Callable[[str], None]
) -> Iterator[None]:
    """Follow the logs of some streams for the run that reads them, until the context is left.

    The driver notices what comes as it does with a local log: the kernel reports that files have
    changed (`input_watch`). So no batch waits for a request to the place.
    """
    stop = threading.Event()
    threads = [
        threading.Thread(
            target=follow_log,
            args=(logs.mirror(stream), stop, say),
            name=f"follow {stream}",
            daemon=True,
        )
        for stream in streams
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
