"""Addresses: the accepted forms, and the errors for others."""

from __future__ import annotations

import pytest

from millstream.errors import InputError
from millstream.sources.address import Address, parse_address
from millstream.sources.named_format import format_named


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("json:data", Address("json", "data")),
        ("jsonl:/a/b:c", Address("json", "/a/b:c")),
        ("CSV:.", Address("csv", ".")),
        ("parquet:x", Address("parquet", "x")),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    """The format by its right name, and the path as given, colons included."""
    assert parse_address(text) == address
    assert format_named(address.format).name == address.format


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data", "--source: must be FORMAT:DIRECTORY; got 'data'.*json:data"),
        (
            "parqet:x",
            "parquet, postgres, sqlite, text; got 'parqet'; did you mean parquet:x",
        ),
        ("avro:x", "one of cassandra, csv, json, .*, sqlite, text; got 'avro'$"),
        ("kafka:", "'kafka:' names no topic; write for example kafka:clicks"),
        ("postgresql:", "'postgresql:' names no table; write for example postgres:clicks"),
        ("json:", "names no directory"),
        ("sqlite:", "names no file; write for example sqlite:data.db"),
        ("", "without a colon"),
    ],
)
def test_what_is_wrong_with_an_address(text: str, message: str) -> None:
    """The error says where, what is expected, what was given, and the nearest valid word."""
    with pytest.raises(InputError, match=message):
        parse_address(text, "--source")
