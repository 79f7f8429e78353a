"""Token buckets and slots, by a clock that the tests hold; what options are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import DefinitionError
from millstream.server.access.limits import Slots, TokenBuckets
from millstream.server.options import ServerOptions, check


def test_a_burst_and_then_the_rate():
    """A full bucket gives its burst at once, then one each time the rate allows."""
    buckets = TokenBuckets(rate=2.0, burst=3.0)
    assert [buckets.take("a", 10.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.5, 0.5]
    assert buckets.take("a", 10.25) == 0.25
    assert buckets.take("a", 10.5) == 0.0
    assert buckets.take("a", 10.5) == 0.5


def test_names_do_not_share():
    """A client that has used up its bucket does not affect the others' buckets."""
    buckets = TokenBuckets(rate=1.0, burst=1.0)
    assert buckets.take("a", 0.0) == 0.0
    assert buckets.take("a", 0.0) > 0.0
    assert buckets.take("b", 0.0) == 0.0


def test_asking_takes_nothing():
    """`wait` says how long, as often as it is asked, and takes no token."""
    buckets = TokenBuckets(rate=1.0, burst=1.0)
    assert [buckets.wait("a", 0.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert buckets.take("a", 0.0) == 0.0
    assert buckets.wait("a", 0.75) == 0.25


def test_the_longest_unseen_is_forgotten():
    """There are never more buckets than allowed, and the one used last stays."""
    buckets = TokenBuckets(rate=0.001, burst=1.0, most=2)
    for name in ("a", "b", "a", "c"):  # b goes
        buckets.take(name, 0.0)
    assert buckets.take("a", 0.0) > 0.0
    assert buckets.take("c", 0.0) > 0.0
    assert buckets.take("b", 0.0) == 0.0


@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=200))
def test_never_more_than_the_rate(pauses):
    """Whenever they come, at most the burst and what the rate adds is let through."""
    buckets, now, passed = TokenBuckets(rate=5.0, burst=10.0), 0.0, 0
    for pause in pauses:
        now += pause
        passed += buckets.take("a", now) == 0.0
        assert passed <= 10.0 + 5.0 * now + 1e-6


def test_slots():
    """A slot is held for as long as its block lasts, however that ends."""
    slots = Slots(1)
    with slots.one():
        assert slots.full
    assert not slots.full
    with pytest.raises(KeyError), slots.one():
        raise KeyError
    assert not slots.full


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"host": "0.0.0.0"}, "at least 16 characters must guard it; got none"),
        ({"host": "0.0.0.0", "token": "short"}, "--tls-cert and --tls-key"),
        ({"host": "example.org"}, "MILLSTREAM_TOKEN"),
        ({"host": "::"}, "can be reached from other machines"),
        ({"token": "café"}, "printable ASCII"),
        ({"token": ""}, "printable ASCII"),
        ({"token": "two words"}, "printable ASCII"),
        ({"token": "line\n"}, "printable ASCII"),
        ({"tls_cert": Path(__file__)}, "both a certificate and its key"),
        ({"tls_cert": Path("no"), "tls_key": Path("no")}, "no: no such file"),
        ({"port": 65_536}, "from 0 to 65535"),
        ({"max_body": 0}, "max_body must be above 0"),
    ],
)
def test_unsafe_options_are_refused(wrong, said):
    """Options that are unsafe or cannot work are refused, with an alternative."""
    with pytest.raises(DefinitionError, match=said):
        check(ServerOptions(Path("store"), **wrong))


def test_safe_options():
    """Loopback needs no token; any other address is fine with one."""
    for host in ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"):
        check(ServerOptions(Path("store"), host=host))
    check(ServerOptions(Path("store"), host="0.0.0.0", token="0123456789abcdef"))
