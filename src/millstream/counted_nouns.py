"""Numbers with their nouns in messages: "1 event", "1,200 events"."""

from __future__ import annotations


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """Returns a number with its noun, in the singular or the plural.

    >>> counted(1, "event"), counted(1200, "event"), counted(2, "try", "tries")
    ('1 event', '1,200 events', '2 tries')
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def verb(number: int, singular: str, plural: str) -> str:
    """Returns the form of a verb that goes with a number.

    >>> counted(1, "slate") + verb(1, " fits", " fit")
    '1 slate fits'
    """
    return singular if number == 1 else plural
