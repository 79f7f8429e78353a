"""`python -m millstream.server`: the process that `child.ServerChild` starts."""

from __future__ import annotations

import sys
import threading

from millstream.child_process import answer_parent, order_from_parent
from millstream.errors import MillstreamError
from millstream.server.child import ChildReport, options_in


def main() -> int:
    stop = threading.Event()
    line = order_from_parent(stop)
    if not line:
        return 0
    try:
        from millstream.server.process import serve

        serve(options_in(line), stop, lambda url: answer_parent(ChildReport(url=url)), beside=True)
    except MillstreamError as error:
        answer_parent(ChildReport(error=str(error)))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
