"""The section of the live page with jobs over windows, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import opened
from jobs_store import JobStore, begins, data, lost, told
from playwright.sync_api import Browser, Locator, Page, expect
from served import served
from shop_store import stocked

expect.set_options(timeout=10_000)


@pytest.fixture
def made(tmp_path: Path) -> JobStore:
    """A window that was closed without the third node, and one that is open."""
    made = JobStore(tmp_path / "store", latency="1s", corrections=5)
    made.tell(*(begins(node, 0) for node in ("web1", "web2", "web3")))
    made.tell(data("web1", 0, records=1_200, total=1_200), told("web2", 0, 12))
    made.tell(lost("web1", 1, "shed", shed=7, total=1_207))
    made.tell(*(data("web1", pane, 40, 1_207 + 40 * (pane - 1)) for pane in range(2, 12)))
    made.wait("11m")
    return made


@pytest.fixture
def page(chromium: Browser, made: JobStore) -> Iterator[Page]:
    """The page, once it has drawn the job; it must stay quiet to the end of the test."""
    size = {"width": 1400, "height": 900}
    with served(made.path) as url, opened(chromium, url, viewport=size) as page:
        expect(page.locator("#jobs")).to_be_visible()
        expect(cells(page, "data")).to_have_count(11)
        yield page


def cells(page: Page, mark: str) -> Locator:
    return page.locator(f"#jobs-map [role=gridcell][data-mark={mark}]")


def cell(page: Page, words: str) -> Locator:
    """The cell that says this."""
    return page.get_by_role("gridcell", name=re.compile(words))


def test_every_pane_is_a_cell(page: Page) -> None:
    """There is a row for each node and a column for each pane. A cell describes the pane's result
    in words, and is darker the more records it has."""
    grid = page.get_by_role("grid", name="Panes by node")
    expect(grid.get_by_role("rowheader")).to_have_text(["web1", "web2", "web3"])
    panes = grid.get_by_role("columnheader").count() - 1
    expect(grid.get_by_role("gridcell")).to_have_count(3 * panes)
    expect(cell(page, "^web1, .*: 1,200 records, 12.0 kB$")).to_have_attribute("data-level", "5")
    expect(cells(page, "data").nth(1)).to_have_attribute("data-level", "1")
    expect(cell(page, "^web1, .*: lost, there was no time for it \\(7 records\\)$")).to_be_visible()
    expect(cells(page, "empty")).to_have_count(12)
    expect(cell(page, "^web3, .*: missing, its windows were closed without it$")).to_have_count(5)
    expect(cell(page, "^web3, .*: awaited$").first).to_be_visible()


def test_what_agents_need_attention_for(page: Page, made: JobStore) -> None:
    """A node that others have left behind and records that an agent could not read are in the strip
    on top, and the page does not say beside them that every event was handled."""
    strip = page.locator("#attention")
    expect(strip).to_contain_text("nothing comes from web3, while other nodes go on")
    expect(page.locator("#letters-none")).to_have_text("None: every event so far was handled.")
    made.tell(data("web1", 12, records=40, total=1_656, dead=9))
    expect(strip).to_contain_text("9 dead records at its agents (web1 9)")
    expect(page.locator("#letters-none")).to_have_text(
        "None here. Agents have set 9 records aside: see the section Windows."
    )
    strip.get_by_role("link", name=re.compile("9 dead records")).click()
    expect(page.locator("#jobs")).to_be_in_viewport()


def test_a_log_that_has_ended_and_what_is_missing(page: Page, made: JobStore) -> None:
    """The panes after the end are empty, and say why; the tables say what is missing."""
    closed = page.get_by_role("table", name=re.compile("^Closed")).get_by_role("row")
    expect(closed.nth(1).get_by_role("cell").first).to_have_text(
        "latency over; missing 10 awaited, 1 shed"
    )
    made.tell({**begins("web2", 12, total=0), "over": True})
    expect(page.locator("#jobs-state")).to_contain_text("1 log ended")
    expect(cell(page, "^web2, .*: nothing, the log has ended$").first).to_be_visible()


def test_windows_are_drawn_and_in_tables(page: Page) -> None:
    """Each window is a bar under its panes; the tables have its C² and why it was closed."""
    bars = page.locator("#jobs-map .window")
    expect(bars.first).to_have_text("63.3 %, latency over")
    expect(bars.first).to_have_attribute("data-state", "closed")
    expect(bars.nth(1)).to_have_attribute("data-state", "open")
    closed = page.get_by_role("table", name=re.compile("^Closed")).get_by_role("row")
    expect(closed).to_have_count(2)
    expect(closed.nth(1)).to_contain_text("latency over")
    expect(closed.nth(1)).to_contain_text("63.3 %100 %66.6 %")
    still_open = page.get_by_role("table", name=re.compile("^Open")).get_by_role("row")
    expect(still_open).to_have_count(3)


def test_the_accounts(page: Page, made: JobStore) -> None:
    """The page shows the account of each node's records, and whether there is a residual."""
    rows = page.get_by_role("table", name=re.compile("^Records")).get_by_role("row")
    expect(rows.nth(1)).to_have_text("web11,6071,600070000")
    expect(rows.last).to_have_text("all1,6071,600070000")
    expect(page.locator("#jobs-residual")).to_have_text("every record is accounted for")
    made.tell(data("web1", 12, records=1, total=1_611))
    expect(page.locator("#jobs-residual")).to_have_text("3 records not accounted for")


def test_the_scoreboard_is_live(page: Page, made: JobStore) -> None:
    """A pane that comes is there without a reload, and the chosen cell stays the same one."""
    cell(page, "1,200 records").focus()
    made.tell(*(told("web3", pane) for pane in range(5, 12)))
    expect(cells(page, "empty")).to_have_count(19)
    made.tell(data("web1", 12, records=9_999, total=11_606))
    expect(cell(page, "9,999 records")).to_be_visible()
    expect(cell(page, "1,200 records")).to_be_focused()
    expect(cell(page, "1,200 records")).to_have_attribute("data-level", "2")


def test_cells_by_keyboard(page: Page) -> None:
    """Tab leads into the grid, arrows go from cell to cell, and the line under it says which."""
    page.locator("#jobs-map [tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#jobs-reading")).to_contain_text("web1, ")
    expect(page.locator("#jobs-reading")).to_contain_text("1,200 records, 12.0 kB")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#jobs-reading")).to_contain_text("there was no time for it")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#jobs-reading")).to_contain_text("nothing to read")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 360)])
def test_accessible_windows(chromium: Browser, made: JobStore, scheme: str, width: int) -> None:
    """axe finds nothing serious in light and dark, large and small, and a small screen never
    scrolls sideways."""
    size = {"width": width, "height": 800}
    with (
        served(made.path) as url,
        opened(chromium, url, viewport=size, color_scheme=scheme, reduced_motion="reduce") as page,
    ):
        expect(cells(page, "data")).to_have_count(11)
        found = [
            (one["id"], one["impact"], [node["html"] for node in one["nodes"]])
            for one in Axe().run(page).response["violations"]
        ]
        assert [one for one in found if one[1] in ("serious", "critical")] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_jobs_there_is_no_section(chromium: Browser, tmp_path: Path) -> None:
    """An application that has none shows nothing of windows."""
    with served(stocked(tmp_path / "shop").path) as url, opened(chromium, url) as page:
        expect(page.locator("#slates-list li").first).to_be_visible()
        expect(page.locator("#jobs")).to_be_hidden()


@pytest.mark.parametrize("width", [1300, 1520])
def test_nothing_is_cut_off(chromium: Browser, tmp_path: Path, width: int) -> None:
    """Windows of seconds with millions of records: every column of the tables has its room, and a
    bar says no half words, however short it is."""
    made = JobStore(tmp_path / "store", range="50s", slide="50s", pane="10s", latency="1s")
    for node in ("web1", "web2", "web3"):
        many = 1_400_000
        made.tell(*(data(node, pane, many, many * (pane + 1)) for pane in range(72)))
    made.wait("800s")
    size = {"width": width, "height": 900}
    with served(made.path) as url, opened(chromium, url, viewport=size) as page:
        expect(page.locator("#jobs-closed td").first).to_be_visible()
        boards = page.locator(".boards .scroll")
        wide = boards.evaluate_all("all => all.map((one) => one.scrollWidth - one.clientWidth)")
        assert wide == [0, 0, 0]
        cut = page.locator(".lanes .words > span").evaluate_all(
            """all => all.filter((one) => {
                const both = [one, one.closest(".window")];
                const [word, bar] = both.map((e) => e.getBoundingClientRect());
                return word.top < bar.bottom - 4 && word.right > bar.right;
            }).map((one) => one.textContent)"""
        )
        assert cut == []
        assert page.locator(".lanes .words").count() > 5


def test_a_gap_is_seen_and_read_out(chromium: Browser, made: JobStore) -> None:
    """A pane with a gap in its log has its own frame, and says so. The amount that the window lacks
    is unknown."""
    made.tell(data("web2", 12, records=3, total=3, gap=80), told("web2", 13, total=3, gap=-1))
    with served(made.path) as url, opened(chromium, url) as page:
        expect(page.locator("#jobs-map [data-gap]")).to_have_count(2)
        expect(
            cell(page, "^web2, .*: 3 records, 30 B, but 80 B of its log are gone$")
        ).to_be_visible()
        expect(
            cell(page, "^web2, .*: nothing to read, but some of its log is gone$")
        ).to_be_visible()
        expect(page.locator("#jobs-closed td").last).to_have_text(re.compile("^≤ "))


def test_much_that_is_late_is_said(chromium: Browser, tmp_path: Path) -> None:
    """The line names the likely cause. Without many late records there is no such line."""
    made = JobStore(tmp_path / "store")
    made.tell(begins("web1", 300))
    with served(made.path) as url, opened(chromium, url) as page:
        expect(page.locator("#jobs-warnings")).to_be_hidden()
        made.tell(data("web1", 300, records=10, total=110, late={"0": 50, "1": 50}))
        expect(page.locator("#jobs-warnings")).to_contain_text("91% of 110 records came late")
