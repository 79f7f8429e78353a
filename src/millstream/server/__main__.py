"""`python -m millstream.server`: the process that `child.ServerChild` starts."""

from __future__ import annotations

import os
import signal
import sys
import threading

import msgspec

from millstream.errors import MillstreamError
from millstream.server.child import Told, options_in

END_SECONDS = 1.8
"""After its stdin has ended, the process is gone within two seconds, whatever hangs."""


def main() -> int:
    stop = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent tells by closing stdin
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    threading.Thread(target=_until_end, args=(stop,), daemon=True).start()
    try:
        from millstream.server.process import serve

        serve(options_in(line), stop, lambda url: _tell(Told(url=url)), beside=True)
    except MillstreamError as error:
        _tell(Told(error=str(error)))
        return 1
    return 0


def _until_end(stop: threading.Event) -> None:
    while os.read(0, 4_096):
        pass
    ending = threading.Timer(END_SECONDS, os._exit, [1])
    ending.daemon = True
    ending.start()
    stop.set()


def _tell(told: Told) -> None:
    try:
        os.write(1, msgspec.json.encode(told) + b"\n")
    except BrokenPipeError:
        pass  # the parent has gone, and so will this


if __name__ == "__main__":
    sys.exit(main())
