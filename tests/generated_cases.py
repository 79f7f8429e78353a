"""The number of cases that Hypothesis generates for a test, by HYPOTHESIS_PROFILE.

ci      the default: four of ten, the same in every run, so that `make test` stays short; tests
        that ask for PROFILE are smaller too
full    all, the same in every run
deep    ten times as many, and others each time
"""

from __future__ import annotations

import os

from hypothesis import settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
_SHARES = {"ci": 0.4, "full": 1.0, "deep": 10.0}


def examples(count: int) -> int:
    """The cases of a test that has so many in a full run."""
    return max(1, round(count * _SHARES[PROFILE]))


def load_profile() -> None:
    """Let tests that say nothing else have the profile's number of cases."""
    if PROFILE not in _SHARES:
        raise ValueError(f"HYPOTHESIS_PROFILE must be one of {', '.join(_SHARES)}; got {PROFILE!r}")
    repeatable = PROFILE != "deep"
    settings.register_profile(
        PROFILE,
        max_examples=examples(100),
        derandomize=repeatable,
        print_blob=not repeatable,
        deadline=None,
    )
    settings.load_profile(PROFILE)
