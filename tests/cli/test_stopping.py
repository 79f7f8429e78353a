"""Signals that ask a run to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

WORK = """
import sys
from millstream.cli.stop_signals import stoppable

def work(stop):
    print("ready", flush=True)
    stop.wait()
    return "stopped"

sys.exit(0 if stoppable(work) == "stopped" else 3)
"""

SIGNALLED_THREAD = """
import signal, sys, threading
from millstream.cli.stop_signals import stoppable

def work(stop):
    main = threading.main_thread().ident
    joining = ("join", "_wait_for_tstate_lock")
    while sys._current_frames()[main].f_code.co_name not in joining:
        pass
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    return "stopped" if stop.wait(20) else "not told"

sys.exit(0 if stoppable(work) == "stopped" else 3)
"""


def test_a_signal_that_another_thread_was_given_is_handled() -> None:
    """The system may give a signal to any thread of a process, and it stops the run all the
    same."""
    done = subprocess.run([sys.executable, "-c", SIGNALLED_THREAD], timeout=60, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("signals", [1, 2, 3])
def test_signals_that_come_together_end_it(signals: int) -> None:
    """However many signals arrive at the same moment, the process ends: in order after one, at once
    after more. A handler that waited for a lock of the handler that it interrupted would never
    end."""
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", WORK], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            for _ in range(signals):
                os.kill(process.pid, signal.SIGTERM)
            ended = process.wait(20)
        # The last one may find the work done, and nobody who handles signals any more.
        at_once = (0, 128 + signal.SIGTERM, -signal.SIGTERM)
        assert ended == 0 if signals == 1 else ended in at_once
