"""The wording of rules that the reference and the engine share."""

import pytest

from millstream.model.function import Update
from millstream.model.rules import no_timer_function


def count(event, slate):
    pass


@pytest.mark.parametrize(
    ("function", "advice"),
    [(count, "with @count.on_timer"), (lambda event, slate: None, "as on_timer=")],
)
def test_a_timer_without_a_function_is_told_how_to_get_one(function, advice):
    """The advice is the one of the check, and fits a function without a name too."""
    message = str(no_timer_function(Update("count", function, ("in",))))
    assert message == (
        "set a timer, but the update has no on_timer function; "
        f"add a function (timer, slate) {advice}"
    )
