"""The address of a topic as a sink: its options, and the values that are refused before anything
runs."""

from __future__ import annotations

import pytest

from millstream.errors import DefinitionError
from millstream.settings.setting_values import check_address


def test_a_topic_with_options() -> None:
    """Servers, how it is delivered, which time, and settings of the client."""
    check_address(
        "kafka:out?servers=a:1,b:2&delivery=at-least-once&time=event&client.linger.ms=0",
        "--sink",
        sink=True,
    )


@pytest.mark.parametrize(
    ("address", "wrong"),
    [
        ("kafka:out", "must name the brokers"),
        ("kafka:out?servers=a:1&delivery=once", "delivery must be exactly-once or at-least-once"),
        ("kafka:out?servers=a:1&time=record", "time must be publish or event; got 'record'"),
        ("kafka:out?servers=a:1&delivry=x", "unknown option 'delivry' .*did you mean 'delivery'"),
        ("kafka:out?servers=a:1&client.acks=1", "client.acks must be left out"),
        ("kafka:out?servers=a:1&client.sasl.password=x", "is a secret"),
        ("kafka:?servers=a:1", "names no topic"),
    ],
)
def test_what_is_refused(address: str, wrong: str) -> None:
    """An option that is missing, unknown, or no option of a sink."""
    with pytest.raises(DefinitionError, match=wrong):
        check_address(address, "--sink", sink=True)
