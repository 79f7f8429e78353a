"""The warnings of a run about slates that are large or have no priority."""

from __future__ import annotations

from progress_counts import functions

from millstream.driver.batch_warnings import KEYS, LargeSlates, UnrankedSlates
from millstream.stores.function_counts import Large, Unranked

MIB = 1024 * 1024


def test_a_slate_is_spoken_of_once_until_it_doubles() -> None:
    """By update and key, with its size, the limit and what to do."""
    large = LargeSlates(MIB, {"count": "dict", "feed": "table"})
    told = [
        list(large.sentences(functions(large={"count": Large("Walmart", size, batch)}), batch))
        for batch, size in enumerate((1_363_149, 2 * MIB, 3 * MIB, 5 * MIB))
    ]
    assert told == [
        [
            "update 'count', key 'Walmart': its slate has 1.3 MiB, over slate_warn (1 MiB); keep "
            "less in it, or use a table"
        ],
        [],
        [
            "update 'count', key 'Walmart': its slate has 3 MiB, over slate_warn (1 MiB); keep "
            "less in it, or use a table"
        ],
        [],
    ]
    (of_table,) = large.sentences(functions(large={"feed": Large("ann", 2 * MIB, 9)}), 9)
    assert "key 'ann': an entry of its table has 2 MiB" in of_table


def test_what_an_earlier_batch_saw_is_not_spoken_of_again() -> None:
    """Only what this batch fed counts."""
    large = LargeSlates(MIB, {})
    assert list(large.sentences(functions(large={"count": Large("k", 2 * MIB, 3)}), 4)) == []


def test_many_large_slates_do_not_fill_the_log() -> None:
    """A few keys of an update are named. They are named again when they double; others are not."""
    large = LargeSlates(MIB, {})
    told = [
        sentence
        for batch in range(3 * KEYS)
        for sentence in large.sentences(
            functions(large={"u": Large(f"k{batch}", 2 * MIB, batch)}), batch
        )
    ]
    assert len(told) == KEYS
    assert len(list(large.sentences(functions(large={"u": Large("k0", 4 * MIB, 99)}), 99))) == 1


def test_an_update_is_spoken_of_once() -> None:
    """With the key, the error and what to do; not again, and not of an earlier batch."""
    unranked = UnrankedSlates()
    assert (
        list(
            unranked.sentences(
                functions(unranked={"count": Unranked(1, "k", "KeyError: 'n'", 3)}), 4
            )
        )
        == []
    )
    (sentence,) = unranked.sentences(
        functions(unranked={"count": Unranked(2, "k", "KeyError: 'n'", 4)}), 4
    )
    assert sentence.startswith(
        "update 'count', key 'k': its priority could not be computed (KeyError: 'n'); slates "
        "without a priority are evicted first"
    )
    assert (
        list(
            unranked.sentences(
                functions(unranked={"count": Unranked(3, "k", "KeyError: 'n'", 5)}), 5
            )
        )
        == []
    )
