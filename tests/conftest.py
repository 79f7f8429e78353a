"""What every test shares: the Hypothesis profiles, and the count of generated cases.

    HYPOTHESIS_PROFILE=ci      the default: the same cases in every run
    HYPOTHESIS_PROFILE=deep    ten times as many, and others each time
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

import case_counter

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("deep", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many generated cases were compared."""
    for line in case_counter.summary():
        terminalreporter.write_line(line)
