"""`millstream new`: writes an application to start from, with sample data and a passing test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from millstream.errors import CommandError
from millstream.model.function import check_name

APP = """\
import millstream as ms

app = ms.App("{name}")
app.source("checkins", key="user", ts="time")


@app.map("checkins", publishes="retailer_checkins")
def recognise(event):
    for retailer in ("Walmart", "Best Buy", "JCPenney"):
        if retailer.lower() in event.value["venue"].lower():
            yield ms.emit(key=retailer)


@app.update("retailer_checkins", ttl="90d")
def count(event, slate):
    slate["count"] = slate.get("count", 0) + 1
"""

TEST = '''\
import json
from pathlib import Path

import millstream as ms
from app import app


def test_each_retailer_counts_its_own():
    """A check-in at a retailer counts for that retailer, however its venue is spelt."""
    venues = ["WALMART #31", "Best Buy, Main St", "the walmart", "Joe's Diner"]
    checkins = [{"user": "ann", "time": n, "venue": venue} for n, venue in enumerate(venues)]
    events = [ms.Event("checkins", c["time"], c["user"], c) for c in checkins]
    run = ms.testing.run(app, events)
    assert run.slates("count") == {"Best Buy": {"count": 1}, "Walmart": {"count": 2}}


def test_the_sample_data():
    """The sample data has 10 check-ins at Walmart, and nothing in it fails."""
    files = sorted((Path(__file__).parent / "data" / "checkins").glob("[1-3].json"))
    records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    run = ms.testing.run(app, {"checkins": records})
    assert run.slate("count", "Walmart") == {"count": 10}
    assert not run.dead_letters
'''

README = """\
# {name}

Counts check-ins by retailer: `app.py` is the application, `data/` some check-ins.

Run it on Spark over the sample data, then read a slate, then run the tests (without Spark):

    millstream run app.py --source checkins=json:data/checkins --available-now
    millstream slates get count Walmart
    pytest

The slate is `{{"count":10}}`. Run the first command again: nothing is counted twice. Without
`--available-now` it keeps running: put another file into `data/checkins` and watch it.
`millstream graph app.py` draws the application.
"""

VENUES = (
    "Walmart Supercenter",
    "Joe's Diner",
    "Best Buy #204",
    "City Library",
    "JCPenney",
    "walmart",
)
FILES, LINES = 3, 10


@click.command()
@click.argument("directory", metavar="NAME", type=click.Path(path_type=Path))
def new(directory: Path) -> None:
    """Write a new application, with sample data and a passing test, into NAME/.

    \b
    Example:
        millstream new retail && cd retail && pytest
    """
    name = directory.name
    check_name(name, "app")
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise CommandError(f"{directory} exists already and is not empty; choose another name")
    files = {
        "app.py": APP.format(name=name),
        "test_app.py": TEST,
        "README.md": README.format(name=name),
        **{f"data/checkins/{number}.json": text for number, text in enumerate(_sample(), 1)},
    }
    try:
        for path, text in files.items():
            file = directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {directory}: {error.strerror}") from None
    click.echo(
        f"wrote {directory}/: app.py, test_app.py, README.md, data/checkins/\n\n"
        f"    cd {directory}\n"
        "    millstream run app.py --source checkins=json:data/checkins --available-now\n"
        "    millstream slates get count Walmart"
    )


def _sample() -> Iterator[str]:
    """Yields the text of each sample file, always the same, so that the README's count is right."""
    for file in range(FILES):
        lines = []
        for line in range(LINES):
            number = file * LINES + line
            checkin = {
                "user": ("ann", "bob", "carol", "dan")[number % 4],
                "time": f"2026-01-05T{9 + file:02d}:{line * 5:02d}:00Z",
                "venue": VENUES[number % len(VENUES)],
            }
            lines.append(json.dumps(checkin) + "\n")
        yield "".join(lines)
