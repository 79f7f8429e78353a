"""The words of the evaluation, and the truth about them.

The paper's "10 MB" are 200,000 words of 100 characters, 50,000 of which are numbers divisible by
three; "most of the words in the file are actually numbers". (So many characters are 20 MB: the
paper's two statements do not agree, and the words are what is counted.) Here three words of four
are numbers, and a third of those are divisible by three, exactly: in each four, one number that is,
two that are not, and one word with a letter in it, in an order drawn by seed. The numbers are drawn
as numbers and written as text; what is divisible is known by division, which the application
never does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

LENGTH = 100
SEED = 11
START = 1_700_000_000_000_000
STEP = 1_000
"""Microseconds of event time between two words."""
LEAST, MOST = 10 ** (LENGTH - 1), 10**LENGTH
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Word(NamedTuple):
    """A word, and its value if it is a number."""

    text: str
    number: int | None


@dataclass(frozen=True, slots=True)
class Truth:
    """The truth about some words: counts, and sums of the words' places to tell words apart."""

    words: int = 0
    numbers: int = 0
    by_three: int = 0
    by_eleven: int = 0
    places: int = 0
    """The sum of the places of the words that are numbers."""
    places_by_three: int = 0

    def with_word(self, place: int, number: int | None) -> Truth:
        """With one word more."""
        if number is None:
            return replace(self, words=self.words + 1)
        three, eleven = number % 3 == 0, number % 11 == 0
        return Truth(
            self.words + 1,
            self.numbers + 1,
            self.by_three + three,
            self.by_eleven + eleven,
            self.places + place,
            self.places_by_three + three * place,
        )


def words(count: int, seed: int = SEED) -> Iterator[Word]:
    """Generates a number of words. The same seed gives the same first words whatever the number."""
    random, made = Random(seed), 0
    while made < count:
        four = [_number(random, 0), _number(random, 1), _number(random, 2), _no_number(random)]
        random.shuffle(four)
        yield from four[: count - made]
        made += 4


def _number(random: Random, rest: int) -> Word:
    """A number of 100 digits which leaves a rest when it is divided by three."""
    number = random.randrange(LEAST + 3, MOST - 3)
    number += rest - number % 3
    return Word(str(number), number)


def _no_number(random: Random) -> Word:
    """A word that is a number but for one letter, anywhere in it."""
    digits, place = str(random.randrange(LEAST, MOST)), random.randrange(LENGTH)
    return Word(digits[:place] + random.choice(LETTERS) + digits[place + 1 :], None)


def records(given: Iterable[Word]) -> Iterator[tuple[str, int | None]]:
    """The lines that the application reads: a word, its place, its time; each with its number."""
    for place, word in enumerate(given):
        ts = START + place * STEP
        yield f'{{"n":{place},"ts":{ts},"word":"{word.text}"}}\n', word.number


def truth_of(given: Iterable[Word]) -> Truth:
    """Computes the truth about words."""
    truth = Truth()
    for place, word in enumerate(given):
        truth = truth.with_word(place, word.number)
    return truth


def written(work: Path, count: int, files: int) -> tuple[Path, Truth]:
    """Returns a folder with a number of words in a number of files, and their truth. It is made
    once and kept."""
    folder = work / f"words-{count}-{SEED}-{files}"
    known = work / f"words-{count}-{SEED}-{files}.truth"
    if folder.exists() and known.exists():
        return folder, Truth(**json.loads(known.read_text()))
    fresh = folder.with_name(f".{folder.name}.writing")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.mkdir(parents=True)
    truth, place, lines = Truth(), 0, records(words(count))
    for number in range(files):
        with open(fresh / f"part-{number:03d}.json", "w") as file:
            for line, value in islice(lines, -(-count // files)):
                file.write(line)
                truth = truth.with_word(place, value)
                place += 1
    known.write_text(json.dumps(asdict(truth)))
    fresh.rename(folder)
    return folder, truth
