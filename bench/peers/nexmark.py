"""Bids and auctions in the manner of Nexmark, and the answers to four of its queries.

A bid comes every millisecond, an auction every 15 bids. Half of the bids are for a hot auction, the
others for one of the last hundred; three quarters are of a hot bidder, the others of one of the
last thousand. Ids are text. Persons are left out: none of these queries reads them.

    q4   the average of the highest valid bids of the auctions of each category
    q5   the auctions with the most bids, in windows of 10 s that begin every 2 s
    q7   the highest bid of every 10 s
    q11  how many bids a bidder makes in a session, which a pause of 10 s ends
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from bench.data import START, made_once

BEGAN = START // 1_000
"""The time of the first bid, in milliseconds; a whole number of windows."""
BIDS_AN_AUCTION, BIDS_A_PERSON = 15, 46
ACTIVE_AUCTIONS, ACTIVE_PERSONS = 100, 1_000
CATEGORIES = 5
WINDOW, SLIDE, GAP = 10_000, 2_000, 10_000
"""Milliseconds."""


def made(work: Path, bids: int, files: int) -> Path:
    """The folder with the folders `bids` and `auctions`; and `bids_in_one`, a single file, for
    those who read files side by side or in any order, and would find most bids late."""
    folder = work / f"nexmark-{bids}-{files}"
    made_once(folder / "auctions", _auctions(bids), auctions_of(bids), files)
    made_once(folder / "bids", _bids(bids), bids, files)
    made_once(folder / "bids_in_one", _bids(bids), bids, 1)
    return folder


def auctions_of(bids: int) -> int:
    """Returns the number of auctions for a number of bids."""
    return ACTIVE_AUCTIONS + (bids - 1) // BIDS_AN_AUCTION


def _auctions(bids: int) -> Iterator[str]:
    random = Random(5)
    lasts = 2 * ACTIVE_AUCTIONS * BIDS_AN_AUCTION
    for number in range(auctions_of(bids)):
        opens = max(0, number - ACTIVE_AUCTIONS + 1) * BIDS_AN_AUCTION
        auction = {
            "auction": f"a{number}",
            "category": f"c{random.randrange(CATEGORIES)}",
            "ts": BEGAN + opens - 1,
            "expires": BEGAN + opens + random.randint(1, lasts),
        }
        yield json.dumps(auction, separators=(",", ":")) + "\n"


def _bids(bids: int) -> Iterator[str]:
    random = Random(6)
    for number in range(bids):
        newest = ACTIVE_AUCTIONS - 1 + max(0, number - 1) // BIDS_AN_AUCTION
        auction = newest - newest % ACTIVE_AUCTIONS
        if random.random() < 0.5:
            auction = newest - random.randrange(ACTIVE_AUCTIONS)
        person = ACTIVE_PERSONS + number // BIDS_A_PERSON
        bidder = person - person % ACTIVE_AUCTIONS
        if random.random() < 0.25:
            bidder = person - random.randrange(ACTIVE_PERSONS)
        bid = {
            "auction": f"a{auction}",
            "bidder": f"p{bidder}",
            "price": int(100 * 10 ** (6 * random.random())),
            "ts": BEGAN + number,
        }
        yield json.dumps(bid, separators=(",", ":")) + "\n"


def q4(source: Path) -> dict[str, Any]:
    opened = {auction["auction"]: auction for auction in _read(source / "auctions")}
    highest: dict[str, int] = {}
    for bid in _read(source / "bids"):
        auction = opened[bid["auction"]]
        if auction["ts"] <= bid["ts"] <= auction["expires"]:
            name = bid["auction"]
            highest[name] = max(highest.get(name, 0), bid["price"])
    prices: dict[str, list[int]] = {}
    for name, price in highest.items():
        prices.setdefault(opened[name]["category"], []).append(price)
    return {"answers": {name: sum(of) / len(of) for name, of in prices.items()}, "open": []}


def q5(source: Path) -> dict[str, Any]:
    counts: dict[int, dict[str, int]] = {}
    for bid in _read(source / "bids"):
        last = bid["ts"] - bid["ts"] % SLIDE
        for start in range(last - WINDOW + SLIDE, last + SLIDE, SLIDE):
            of = counts.setdefault(start, {})
            of[bid["auction"]] = of.get(bid["auction"], 0) + 1
    answers = {}
    for start, of in counts.items():
        most = max(of.values())
        answers[str(start)] = [most, sorted(name for name, count in of.items() if count == most)]
    return _closed(answers, source)


def q7(source: Path) -> dict[str, Any]:
    highest: dict[int, int] = {}
    for bid in _read(source / "bids"):
        start = bid["ts"] - bid["ts"] % WINDOW
        highest[start] = max(highest.get(start, 0), bid["price"])
    return _closed({str(start): price for start, price in highest.items()}, source)


def q11(source: Path) -> dict[str, Any]:
    """Sessions by their bidder and start; one that the input leaves open has no answer."""
    answers: dict[str, int] = {}
    started: dict[str, tuple[int, int]] = {}
    ends = 0
    for bid in _read(source / "bids"):
        ends, bidder = bid["ts"], bid["bidder"]
        start, last = started.get(bidder, (ends, ends))
        if ends - last >= GAP:
            start = ends
        started[bidder] = start, ends
        name = f"{bidder} {start}"
        answers[name] = answers.get(name, 0) + 1
    left = {f"{bidder} {start}" for bidder, (start, last) in started.items() if ends - last <= GAP}
    return _without(answers, left)


ANSWERS: dict[str, Callable[[Path], dict[str, Any]]] = {"q4": q4, "q5": q5, "q7": q7, "q11": q11}
"""The plain answers: `answers`, and the keys of windows that are left `open`."""


def _closed(answers: dict[str, Any], source: Path) -> dict[str, Any]:
    """Without the windows that end after the last bid."""
    ends = max(bid["ts"] for bid in _read(source / "bids", last=True))
    return _without(answers, {start for start in answers if int(start) + WINDOW > ends})


def _without(answers: dict[str, Any], left: set[str]) -> dict[str, Any]:
    kept = {name: answer for name, answer in answers.items() if name not in left}
    return {"answers": kept, "open": sorted(left)}


def _read(folder: Path, last: bool = False) -> Iterator[Any]:
    paths = sorted(folder.iterdir())[-1 if last else 0 :]
    return map(json.loads, itertools.chain.from_iterable(map(Path.open, paths)))
