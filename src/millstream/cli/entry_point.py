"""The entry point of the script `millstream`.

Loading the commands takes 0.3 s. Until `cli.main` handles Ctrl-C, it ends the process at once, as
it does any program that does not handle it: without a traceback of imports, and with the same exit
code, 130 to a shell.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Loads the command line and runs it."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # else whoever started it has it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from millstream.cli.main import main as command_line

    signal.signal(signal.SIGINT, handler)
    command_line()
