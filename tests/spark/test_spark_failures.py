"""The errors for a batch that Spark has ended."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JNetworkError

from millstream.errors import RunError
from millstream.spark.failures import from_spark

JOB = "\n".join(
    [
        "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.",
        ": org.apache.spark.SparkException: Job aborted due to stage failure: {cause}",
        "\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(...)",
        "Driver stacktrace:",
    ]
)
TASK = """Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
millstream.errors.{first}

The above exception was the direct cause of the following exception:

millstream.errors.StoreError: shard 3: the disk is full

\tat org.apache.spark.api.python.BasePythonRunner"""


def test_our_own_error_is_taken_out_of_a_traceback() -> None:
    """The error is the task's own; the last one if there are several."""
    cause = TASK.format(first="InputError: line 3: not JSON")
    error = from_spark(Exception(JOB.format(cause=cause)))
    assert type(error) is RunError
    assert str(error) == "shard 3: the disk is full"


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (
            "java.io.IOException: No space left on device",
            "Spark ended the batch: No space left; make room and start again",
        ),
        (
            "org.apache.spark.SparkException: Python worker failed to connect back.",
            "Spark ended the batch: Python worker failed to connect back; the machine is too busy "
            "to start a process in ten seconds: start again when it is less busy, nothing is lost",
        ),
        (
            "\nMost recent failure:\nLost task 0.1 in stage 0.0 (TID 1) (10.0.0.7 executor 0): "
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in "
            "driver: 3.11, PySpark cannot run with different minor versions.",
            "the executors' Python is 3.12, and the driver's 3.11: their minor versions must be "
            "the same; name another Python of theirs with --python",
        ),
        (
            "\nLost task 0.1 in stage 0.0 (TID 1): java.io.IOException: Cannot run program "
            '"python3.11": error=2, No such file or directory',
            "an executor has no 'python3.11' to run: install that Python there, or name another "
            "with --python",
        ),
        (
            "\n/usr/bin/python3: Error while finding module specification for "
            "'millstream.spark.daemon' (ModuleNotFoundError: No module named 'millstream')",
            "the executors' Python has no millstream: leave out --runtime installed, and it is "
            "sent to them, or install it there",
        ),
        (
            "\nAborting TaskSet 0.0 because task 0 cannot run anywhere.\nMost recent failure:\n"
            "Lost task 0.1 in stage 0.0 (TID 1) (10.0.0.7 executor 0): java.lang.Error: odd",
            "Spark ended the batch: Lost task 0.1 in stage 0.0 (TID 1) (10.0.0.7 executor 0): "
            "java.lang.Error: odd; nothing is lost, start again",
        ),
    ],
)
def test_what_spark_could_not_do_comes_with_advice(cause: str, said: str) -> None:
    """In one sentence, without Spark's own traceback."""
    assert str(from_spark(Exception(JOB.format(cause=cause)))) == said


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "Connection refused"),
        ConnectionResetError(104, "Connection reset by peer"),
        Py4JNetworkError("Error while sending or receiving"),
    ],
)
def test_a_jvm_that_is_gone(error: Exception) -> None:
    """For any sign of the loss, the error says what may have ended the JVM and what to do."""
    said = str(from_spark(error))
    assert "ended from outside, or ran out of memory (--memory); nothing is lost" in said


def test_anything_else_is_told_by_its_cause() -> None:
    """One line names the cause, and says that nothing is lost."""
    cause = "Task 1 in stage 0.0 failed 4 times: ExecutorLostFailure"
    said = str(from_spark(Exception(JOB.format(cause=cause))))
    assert cause in said
    assert said.endswith("; nothing is lost, start again")
    assert "\n" not in said
