"""Draws pictures of the page for the documentation: docs/pictures/live.png, windows.png and
feeds.png, from applications as they are in the tests and in examples/.

    PYTHONPATH=tests:tests/server:. .venv/bin/python tests/server/pictures.py [NAME ...]

`live` runs the retail example for some minutes, in one process, with check-ins as in `make demo`.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import httpx
from browser import launched, opened
from playwright.sync_api import Page, expect

PICTURES = Path(__file__).resolve().parent.parent.parent / "docs" / "pictures"
SECONDS = 200.0
"""The duration of the check-ins before the picture."""
MINUTE = 60


def main() -> None:
    makers = {"live": live, "windows": windows, "feeds": feeds}
    asked = sys.argv[1:] or list(makers)
    with tempfile.TemporaryDirectory() as folder:
        for name in asked:
            makers[name](Path(folder), PICTURES / f"{name}.png")


@contextmanager
def page_at(url: str, width: int) -> Iterator[Page]:
    size = {"width": width, "height": 900}
    with launched() as browser, opened(browser, url, viewport=size) as page:
        yield page


def live(folder: Path, picture: Path) -> None:
    from examples import generate
    from millstream import Client

    store = folder / "retail"
    command = [str(Path(sys.executable).with_name("millstream")), "dev", "examples/retail.py"]
    process = subprocess.Popen(
        [*command, "--store", str(store), "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        url = next(line for line in process.stderr if "live page" in line).split()[-1]
        random, began = Random(1), time.monotonic()
        with Client(url) as client:
            while time.monotonic() - began < SECONDS:
                at = int(time.time() * generate.SECOND)
                made = [generate.checkin(random, at - n * 1_000) for n in range(60)]
                client.send("checkins", made)
                time.sleep(0.15)
            with page_at(f"{url}/#slate=count/Walmart", 1200) as page:
                for _ in range(30):
                    at = int(time.time() * generate.SECOND)
                    client.send("checkins", [generate.checkin(random, at - n) for n in range(60)])
                    page.wait_for_timeout(150)
                bottom = page.locator("#slates").bounding_box()
                assert bottom is not None
                height = math.ceil(bottom["y"] + page.evaluate("scrollY") + bottom["height"] + 16)
                clip = {"x": 0, "y": 0, "width": 1200, "height": height}
                page.screenshot(path=picture, full_page=True, clip=clip)
    finally:
        process.terminate()
        process.wait()


def windows(folder: Path, picture: Path) -> None:
    from jobs_store import NODES, JobStore, begins, data, lost, told
    from served import served

    made = JobStore(folder / "jobs", latency="2m", corrections=5)
    first = int(time.time()) // MINUTE - 34
    totals = dict.fromkeys(NODES, 0)
    made.tell(*(begins(node, first) for node in NODES))
    for pane in range(first, first + 33):
        made.wait("1m")
        for number, node in enumerate(NODES):
            at = pane - first
            if node == "web3" and at > 29:
                continue  # it is slow to tell
            if node == "web2" and at in (11, 12):
                totals[node] += 240
                made.tell(lost(node, pane, "shed", shed=240, total=totals[node]))
            elif node == "web3" and 5 <= at < 9:
                made.tell(told(node, pane, total=totals[node]))
            else:
                records = round(600 + 450 * math.sin(at / 5 + number) + 90 * number)
                totals[node] += records
                made.tell(data(node, pane, records=records, total=totals[node]))
    with served(made.path) as url, page_at(url, 1400) as page:
        expect(page.locator("#jobs")).to_be_visible()
        expect(page.locator("#jobs-map [role=gridcell]").first).to_be_visible()
        page.locator("#jobs").screenshot(path=picture)


def feeds(folder: Path, picture: Path) -> None:
    from served import served
    from town_store import town

    with served(town(folder / "town", k=20).path) as url, page_at(f"{url}/#feed=ana", 1280) as page:
        post = {"producer": "Tram line 7", "value": {"text": "Service is back to normal."}}
        httpx.post(f"{url}/feeds/events", json={"kind": "post", **post}).raise_for_status()
        expect(page.locator("#feed-items > li").filter(has_text="pending")).to_be_visible()
        page.locator("#feeds").screenshot(path=picture)


if __name__ == "__main__":
    main()
