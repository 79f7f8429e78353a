"""Traffic for examples/social.py: users who follow each other, post, and read their feeds.

    python -m examples.social_traffic --seconds 20 [--url http://127.0.0.1:8470] [--users 50]

Who is followed, who posts and who reads each follow Zipf's law, in orders of their own, as in the
paper's workload (Table 2): few are followed by many, few post much, few look all the time. One
in ten posts is edited or deleted later, and now and then somebody unfollows. `traffic` decides what
happens, the same for the same seed; `carry_out` does it over HTTP. It stops by itself, and says how
many pairs are pushed and pulled by then.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Literal

from millstream.client import DEFAULT_URL, Client
from millstream.errors import MillstreamError

FOLLOWS_A_USER = 8
TALK = ("coffee", "the 8:15", "a paper on feeds", "rain", "a cat", "nothing much", "lunch")
Kind = Literal["follow", "unfollow", "post", "edit", "delete", "read"]


@dataclass(frozen=True, slots=True)
class Step:
    """Something that a user does."""

    kind: Kind
    user: str
    other: str = ""
    """The user to follow."""
    text: str = ""
    post: int = 0
    """The post that the step is about: the number of the step that made it."""


def traffic(users: int, seed: int) -> Iterator[Step]:
    """Generates steps without end. At first each user follows some others."""
    random = Random(seed)
    names = [f"user{number}" for number in range(users)]
    liked, talking, looking = (random.sample(names, users) for _ in range(3))
    weights = [*accumulate(1 / rank for rank in range(1, users + 1))]

    def one_of(ranked: list[str]) -> str:
        return random.choices(ranked, cum_weights=weights)[0]

    number = 0
    for user in names:
        for other in {one_of(liked) for _ in range(FOLLOWS_A_USER)} - {user}:
            number += 1
            yield Step("follow", user, other)
    posts: list[tuple[int, str]] = []
    while True:
        number += 1
        chance = random.random()
        if chance < 0.70:
            yield Step("read", one_of(looking))
        elif chance < 0.96 or not posts:
            author = one_of(talking)
            posts.append((number, author))
            text = f"{random.choice(TALK)}, says {author}"
            yield Step("post", author, text=text, post=number)
        elif chance < 0.985:
            post, author = posts.pop(random.randrange(len(posts)))
            kind: Kind = random.choice(("edit", "delete"))
            yield Step(kind, author, text="never mind", post=post)
        else:
            kind = random.choice(("follow", "unfollow"))
            user, other = random.choice(names), one_of(liked)
            if user != other:
                yield Step(kind, user, other)


def carry_out(client: Client, step: Step, run: str) -> None:
    """Do it; `run` makes the ids of posts those of one run."""
    feeds, post = client.feeds, f"{run}-{step.post}"
    if step.kind == "read":
        feeds.read(step.user)
    elif step.kind == "follow":
        feeds.follow(step.user, step.other)
    elif step.kind == "unfollow":
        feeds.unfollow(step.user, step.other)
    elif step.kind == "post":
        feeds.post(step.user, {"text": step.text}, id=post)
    elif step.kind == "edit":
        feeds.edit(step.user, post, {"text": step.text})
    else:
        feeds.delete(step.user, post)


def drive(
    client: Client, users: int, seed: int, seconds: float, clock: Callable[[], float]
) -> Counter[str]:
    """Carry traffic out for so long; how many steps of each kind there were."""
    done: Counter[str] = Counter()
    begun = said = clock()
    run = f"{int(time.time()):x}"
    for step in traffic(users, seed):
        now = clock()
        if now - begun >= seconds:
            break
        if now - said >= 5:
            said = now
            print(f"{now - begun:.0f} of {seconds:g} s: {_words(done)}", file=sys.stderr)
        carry_out(client, step, run)
        done[step.kind] += 1
    return done


def _words(done: Counter[str]) -> str:
    names = {"follow": "follows", "unfollow": "unfollows", "post": "posts", "read": "reads"}
    counted = [f"{done[kind]:,} {words}" for kind, words in names.items()]
    return ", ".join([*counted, f"{done['edit'] + done['delete']:,} edits and deletes"])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Drive examples/social.py.")
    parser.add_argument("--url", default=DEFAULT_URL, help=f"default: {DEFAULT_URL}")
    parser.add_argument("--seconds", type=float, default=20.0, help="default: 20")
    parser.add_argument("--users", type=int, default=50, help="default: 50")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args(arguments)
    if given.users < 2:
        parser.error(f"--users must be 2 or more; got {given.users}")
    try:
        with Client(given.url) as client:
            done = drive(client, given.users, given.seed, given.seconds, time.monotonic)
            print(_words(done))
            for name, network in client.feeds.network().items():
                print(
                    f"{name}: {network.producers:,} producers, {network.consumers:,} consumers, "
                    f"{network.pairs:,} pairs, {network.pushed:,} pushed and "
                    f"{network.pulled:,} pulled"
                )
    except MillstreamError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
