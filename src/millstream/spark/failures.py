"""What stopped a query, in one sentence, out of what Spark says of it."""

from __future__ import annotations

import re

from millstream.errors import MillstreamError, RunError

_SLOW = "Python worker failed to connect back"
ADVICE = {
    "No space left": "; make room and start again",
    _SLOW: "; the machine is too busy to start a process in ten seconds: start again when it is "
    "less so, nothing is lost",
}
"""What to do, by what Spark says."""


def started_too_slowly(error: Exception) -> bool:
    """Whether a Python process that Spark has asked for did not start in time."""
    return _SLOW in str(error)


def from_spark(error: Exception) -> MillstreamError:
    """Our own error out of the traceback that Spark carries back from a Python worker; else what
    Spark itself could not do, such as write its checkpoint."""
    text = str(error)
    ours = re.findall(r"millstream\.errors\.(\w+): (.*)", text)
    if ours:
        return RunError(ours[-1][1])
    ended = re.search(
        r"terminated with exception: (?:[\w.$]+: )*(.*?)(?: SQLSTATE: \w+)?$", text, re.M
    )
    if ended and ended[1]:
        place = re.search(r"checkpointLocation=file:(?://)?([^,\]\s]+)", text)
        where = f"{place[1]}: " if place else ""
        advice = next((told for words, told in ADVICE.items() if words in ended[1]), "")
        return RunError(f"{where}Spark ended the query: {ended[1]}{advice}")
    lines = [line for line in text.splitlines() if line.strip()]
    return RunError(f"Spark ended the query: {lines[-1] if lines else type(error).__name__}")
