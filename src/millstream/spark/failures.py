"""What ended a job, in one sentence, out of what Spark says of it."""

from __future__ import annotations

import re

from millstream.errors import MillstreamError, RunError

ADVICE = {
    "No space left": "make room and start again",
    "Python worker failed to connect back": "the machine is too busy to start a process in ten "
    "seconds: start again when it is less so, nothing is lost",
    "Connection refused": "its process was ended from outside, or ran out of memory (--memory); "
    "nothing is lost, start again",
    "Answer from Java side is empty": "its process was ended from outside, or ran out of memory "
    "(--memory); nothing is lost, start again",
}
"""What to do, by what Spark says."""


def from_spark(error: Exception) -> MillstreamError:
    """Our own error out of the traceback that Spark carries back from a Python worker; else what
    Spark itself could not do."""
    text = str(error)
    ours = re.findall(r"millstream\.errors\.(\w+): (.*)", text)
    if ours:
        return RunError(ours[-1][1])
    for words, advice in ADVICE.items():
        if words in text:
            return RunError(f"Spark ended the batch: {words}; {advice}")
    if isinstance(error, OSError) or "Py4JNetworkError" in type(error).__name__:
        return RunError(
            "Spark's JVM has ended: it was ended from outside, or ran out of memory (--memory); "
            "nothing is lost, start again"
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next((line for line in lines if "failure:" in line or "Caused by:" in line), None)
    said = cause or (lines[0] if lines else type(error).__name__)
    return RunError(f"Spark ended the batch: {said}; nothing is lost, start again")
