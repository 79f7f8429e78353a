"""The generated applications themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from engine.workflow_case import Case
from engine.workflow_cases import cases
from generated_cases import examples
from hypothesis import given, settings

from millstream.model.event import Event
from millstream.reference import Reference
from millstream.spark.function_pickle import dumps

READER = """
import pickle, sys
workflow, events = pickle.load(sys.stdin.buffer)
from millstream.reference import Reference
reference = Reference(workflow)
reference.feed(events)
reference.drain()
assert "engine" not in {name.split(".")[0] for name in sys.modules}
print(sum(map(len, reference.streams.values())), len(reference.dead_letters))
"""


def test_a_case_can_be_carried_to_another_process() -> None:
    """A case's functions are pickled for a process that has no access to their module."""
    kept: list[Case] = []

    @settings(max_examples=examples(20), database=None)
    @given(cases())
    def keep(case: Case) -> None:
        kept.append(case)

    keep()
    case = max(kept, key=lambda case: len(case.functions))
    events = [Event("s0", n, "k", {"n": n}) for n in range(5)]
    workflow = case.workflow()
    packed = dumps((workflow, events), workflow)
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", READER],
        input=packed,
        capture_output=True,
        check=False,
        env={"PYTHONPATH": str(source)},
    )
    assert done.returncode == 0, done.stderr.decode()
    reference = Reference(workflow)
    reference.feed(events)
    reference.drain()
    published = sum(map(len, reference.streams.values()))
    assert done.stdout.decode().split() == [str(published), str(len(reference.dead_letters))]


@settings(max_examples=examples(100))
@given(cases(cyclic=True))
def test_cyclic_cases_end(case: Case) -> None:
    """Feedback damps: a cyclic application comes to an end."""
    workflow = case.workflow()
    reference = Reference(workflow)
    reference.feed(case.events)
    reference.drain()
    assert sum(map(len, reference.streams.values())) < 20_000
