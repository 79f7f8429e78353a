"""Turns Spark's error of a failed job into one sentence on its cause."""

from __future__ import annotations

import re
import sys

from millstream.errors import MillstreamError, RunError

ADVICE = {
    "No space left": "make room and start again",
    "Python worker failed to connect back": "the machine is too busy to start a process in ten "
    "seconds: start again when it is less busy, nothing is lost",
    "Connection refused": "its process was ended from outside, or ran out of memory (--memory); "
    "nothing is lost, start again",
    "Answer from Java side is empty": "its process was ended from outside, or ran out of memory "
    "(--memory); nothing is lost, start again",
}
"""Advice for the user, by the words in Spark's error."""


_CAUSE = re.compile(r"failure: *\S|Lost task|Caused by:")
EXECUTORS = (
    (
        re.compile(
            r"Python in worker has different version: ([\d.]+) than that in driver: ([\d.]+)"
        ),
        "the executors' Python is {0}, and the driver's {1}: their minor versions must be the "
        "same; name another Python of theirs with --python",
    ),
    (
        re.compile(r'Cannot run program "([^"]+)"'),
        "an executor has no {0!r} to run: install that Python there, or name another with --python",
    ),
    (
        re.compile(r"No module named '(millstream|lmdb|msgspec|numpy|pyarrow|obstore)[.\w]*'"),
        "the executors' Python has no {0}: leave out --runtime installed, and it is sent to them, "
        "or install it there",
    ),
)
"""Errors about what executors lack, by a pattern in Spark's error."""


def from_spark(error: Exception, python: str = "") -> MillstreamError:
    """Returns our own error from the traceback of a Python worker, or an error for Spark's failure.

    `python` is the Python of the workers, if the context is not ours.
    """
    text = str(error)
    ours = re.findall(r"millstream\.errors\.(\w+): (.*)", text)
    if ours:
        return RunError(ours[-1][1])
    for pattern, sentence in EXECUTORS:
        match = pattern.search(text)
        if match is not None and python:
            return RunError(
                f"{sentence.format(*match.groups()).partition(':')[0]}: they run {python}, as this "
                f"process's SparkContext says; set PYSPARK_PYTHON={sys.executable} before it is "
                "opened, or install Millstream there"
            )
        if match is not None:
            return RunError(sentence.format(*match.groups()))
    for words, advice in ADVICE.items():
        if words in text:
            return RunError(f"Spark ended the batch: {words}; {advice}")
    if isinstance(error, OSError) or "Py4JNetworkError" in type(error).__name__:
        return RunError(
            "Spark's JVM has ended: it was ended from outside, or ran out of memory (--memory); "
            "nothing is lost, start again"
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next((line for line in lines if _CAUSE.search(line)), None)
    reason = cause or (lines[0] if lines else type(error).__name__)
    return RunError(f"Spark ended the batch: {reason}; nothing is lost, start again")
