"""The live page in a real browser, on a real server, over a store that the test commits to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import opened
from playwright.sync_api import Browser, Locator, Page, expect
from served import MadeStore, served
from shop_store import MARKUP, Shop, stocked

from millstream.server.child import ServerChild
from millstream.server.options import ServerOptions

expect.set_options(timeout=10_000)
SMALL = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return stocked(tmp_path_factory.mktemp("page") / "shop")


@pytest.fixture(scope="module")
def url(shop: Shop) -> Iterator[str]:
    """The server of the tests that need no other one."""
    with served(shop.path) as url:
        yield url


@pytest.fixture
def page(chromium: Browser, url: str) -> Iterator[Page]:
    """The page, once it has drawn itself; it must stay quiet to the end of the test."""
    with opened(chromium, url, viewport={"width": 1400, "height": 900}) as page:
        expect(rows(page)).to_have_count(50)
        yield page


def rows(page: Page) -> Locator:
    """The slates that are listed."""
    return page.locator("#slates-list").get_by_role("option")


def figure(page: Page, name: str) -> Locator:
    """The number of a figure at the top."""
    return page.locator(".figure", has=page.get_by_text(name, exact=True)).locator(".value")


def search(page: Page, prefix: str) -> None:
    page.get_by_label("Key begins with").fill(prefix)


def choose(page: Page, key: str) -> Locator:
    """Open the slate of a key; where it is shown."""
    search(page, key)
    expect(rows(page)).to_have_count(1)
    rows(page).click()
    return page.locator("#slate")


def test_the_workflow_is_drawn(page: Page) -> None:
    """Every source, function, stream and output is in the drawing, with rates and slates, and in
    the tables that say the same in words."""
    graph = page.locator("#graph svg")
    for name in ("visits", "recognise", "store_visits", "count", "milestones"):
        expect(graph.get_by_text(name, exact=True).first).to_be_visible()
    expect(graph.locator(".edge")).to_have_count(3)
    expect(graph.locator(".rate")).to_have_count(2)
    expect(graph.locator(".rate").first).to_have_text(re.compile(r"^[\d,.<]+/s$"))
    expect(graph.get_by_text("124 slates")).to_be_visible()
    expect(page.get_by_role("img", name="Workflow of shop")).to_be_visible()
    page.get_by_text("All numbers", exact=True).click()
    streams = page.get_by_role("table", name="Streams").get_by_role("row")
    expect(streams).to_have_text(
        [
            "StreamFromToEventsEvents/s",
            re.compile("^visitssourcerecognise"),
            re.compile("^store_visitsrecognisecount"),
            re.compile("^milestonescountoutput"),
        ],
        use_inner_text=False,
    )


def test_the_figures(page: Page, shop: Shop) -> None:
    """The top says which application it is, that it runs, and how it does."""
    expect(page).to_have_title("shop · Millstream")
    expect(page.get_by_role("heading", level=1)).to_have_text("shop")
    expect(page.locator("#badge")).to_have_text("running")
    batch = shop.count({})
    expect(figure(page, "Batch")).to_have_text(str(batch))
    expect(figure(page, "Latency p99")).to_have_text("250")
    expect(figure(page, "Slates")).to_have_text("124")


def test_counts_move(page: Page, shop: Shop) -> None:
    """A committed batch shows at the top, in the list of slates and on the charts, without a
    reload."""
    search(page, "store 00")
    expect(rows(page)).to_have_count(10)
    expect(rows(page).nth(3)).to_have_text('store 003{"count":3}')
    batch = shop.count({"store 003": {"count": 4_321}}, visits=50_000)
    expect(figure(page, "Batch")).to_have_text(str(batch))
    expect(rows(page).nth(3)).to_have_text('store 003{"count":4321}')
    expect(page.get_by_text(f"{shop.visits:,} in all")).to_be_visible()
    expect(figure(page, "Events")).not_to_have_text("0")
    for chart in ("#throughput", "#latency"):
        expect(page.locator(f"{chart} .series")).to_have_attribute("d", re.compile("^M"))
        expect(page.locator(f"{chart} desc")).to_contain_text("Last ")
    expect(page.locator("#latency .reading")).to_have_text("p50250msp99250ms")


def test_search_and_pages(page: Page) -> None:
    """Typing finds keys by their beginning. Pages can be turned in both directions. An empty result
    is stated."""
    expect(page.locator("#slates-found")).to_have_text("1 to 50")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#slates-found")).to_have_text("51 to 100")
    page.get_by_role("button", name="Next").click()
    expect(rows(page)).to_have_count(24)
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    page.get_by_role("button", name="Back").click()
    expect(page.locator("#slates-found")).to_have_text("51 to 100")
    page.get_by_label("Key begins with").press_sequentially("store 07")
    expect(rows(page)).to_have_count(10)
    expect(page.locator("#slates-found")).to_have_text("10 slates")
    expect(page.locator("#announcer")).to_have_text("10 slates")
    search(page, "no such")
    none = page.locator("#slates-none")
    expect(none).to_have_text("No key of count begins with “no such”.")
    expect(none).to_be_visible()


def test_markup_is_text(page: Page) -> None:
    """A key, a value or an error that looks like markup shows as it is, everywhere, and nothing
    runs."""
    slate = choose(page, MARKUP)
    expect(rows(page)).to_have_text(MARKUP + '{"note":"<script>alert(1)</script>"}')
    expect(slate.get_by_role("heading")).to_have_text(MARKUP)
    expect(slate.locator("pre")).to_contain_text(f'"note": "{MARKUP}"')
    page.locator("#letters-groups > li").last.locator("summary").first.click()
    expect(page.locator("#letters-groups .key").last).to_have_text(MARKUP)
    search(page, MARKUP + "<img src=x onerror=alert(2)>")
    expect(page.locator("#slates-none")).to_contain_text("<img src=x onerror=alert(2)>")
    assert page.evaluate("document.querySelectorAll('script, img').length") == 1


@pytest.mark.parametrize("key", ["", "a/b?c=%2F#d"], ids=["empty", "signs"])
def test_keys_of_any_characters(page: Page, key: str) -> None:
    """The empty key and one full of signs open like any other; long numbers keep their digits."""
    shown = "9007199254740993" if key else "0"
    if key:
        slate = choose(page, key)
    else:
        rows(page).first.click()
        slate = page.locator("#slate")
    expect(slate.get_by_role("heading")).to_have_text(key or "the empty key")
    expect(slate.locator("pre")).to_have_text(f'{{\n  "count": {shown}\n}}\n')


def test_a_slate_is_live(page: Page, shop: Shop) -> None:
    """The chosen slate changes when batches are committed, with the changes marked. The page says
    so when the slate is gone."""
    shop.count({"live": {"count": 1, "name": "the same"}})
    slate = choose(page, "live")
    expect(slate.locator("pre")).to_contain_text('"count": 1,')
    expect(slate.locator(".changed")).to_have_count(0)
    batch = shop.count({"live": {"count": 2, "name": "the same"}})
    expect(slate.locator(".changed")).to_have_text('  "count": 2,\n')
    expect(slate.locator("pre")).to_contain_text('"name": "the same"')
    expect(slate).to_contain_text(f"batch {batch}")
    shop.count({"live": None})
    expect(slate).to_contain_text("There is no slate for this key")


def test_a_tail_is_live(page: Page, shop: Shop) -> None:
    """The output's last records are there, newest first; new ones come; paused, they wait; the page
    holds 200."""
    records = page.locator("#tails-rows tr")
    expect(records).to_have_count(20)
    expect(records.first.locator("td")).to_contain_text(["29", ":", "store 29", '{"count":2900}'])
    shop.milestones(("fresh", {"count": 3_000}))
    expect(records.first).to_contain_text("fresh")
    page.get_by_role("button", name="Pause").click()
    shop.milestones(*((f"many {number}", None) for number in range(250)))
    expect(page.locator("#tails-state")).to_have_text("paused, 250 new")
    expect(records.first).to_contain_text("fresh")
    page.get_by_role("button", name="Pause").click()
    expect(records.first).to_contain_text("many 249")
    expect(records).to_have_count(200)


def test_another_stream_is_tailed(page: Page, shop: Shop) -> None:
    """Choosing a source shows its records as they were sent."""
    shop.append("visits", {"user": "u1", "venue": "<b>Target</b>"})
    page.get_by_role("combobox", name="Stream").select_option("visits")
    record = page.locator("#tails-rows tr").first
    expect(record.locator(".value")).to_have_text('{"user":"u1","venue":"<b>Target</b>"}')


def test_dead_letters(page: Page, shop: Shop) -> None:
    """Dead letters are grouped by function and error, the newest first; a letter shows its key, its
    place, and its value when that is opened; a new one comes by itself."""
    groups = page.locator("#letters-groups > li")
    expect(groups.last).to_contain_text("'NoneType' object has no attribute 'lower'")
    groups.last.locator("summary").first.click()
    letters = groups.last.locator("tbody tr")
    expect(letters.last).to_contain_text("shop.py:17")
    expect(letters.last.locator("pre")).to_be_hidden()
    letters.last.get_by_text('{"venue":null').click()
    expect(letters.last.locator("pre")).to_contain_text('"venue": null')
    shop.fail("u7", "KeyError: 'venue'")
    shop.count({})
    expect(groups.first).to_contain_text("KeyError: 'venue'")
    expect(letters.last.locator("pre")).to_be_visible()
    expect(figure(page, "Dead letters")).to_have_text(str(shop.letters))
    expect(page.locator("#announcer")).to_have_text("1 new dead letter")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 360)])
def test_accessible(chromium: Browser, url: str, scheme: str, width: int) -> None:
    """axe finds nothing serious, with everything open, in light and dark, large and small; and a
    small screen never scrolls sideways."""
    size = {"width": width, "height": 800}
    with opened(chromium, url, viewport=size, color_scheme=scheme, reduced_motion="reduce") as page:
        expect(rows(page)).to_have_count(50)
        rows(page).nth(1).click()
        expect(page.locator("#slate pre")).to_be_visible()
        expect(page.locator("#tails-rows tr").first).to_be_visible()
        expect(page.locator("#throughput .series")).to_have_attribute("d", re.compile("^M"))
        page.get_by_text("All numbers", exact=True).click()
        group = page.locator("#letters-groups > li").last
        group.locator("summary").first.click()
        group.locator("tbody summary").last.click()
        found = [
            (one["id"], one["impact"], [node["html"] for node in one["nodes"]])
            for one in Axe().run(page).response["violations"]
        ]
        assert [one for one in found if one[1] in ("serious", "critical")] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_keyboard_only(page: Page) -> None:
    """From the top: the skip link leads to the slates; Tab, arrows, Enter and typing do all that a
    pointer does, and what has the focus shows it."""

    def focused(selector: str) -> None:
        expect(page.locator(selector)).to_be_focused()

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the slates")).to_be_focused()
    page.keyboard.press("Enter")
    focused("#slates")
    page.keyboard.press("Tab")
    focused("#slates-update")
    page.keyboard.press("Tab")
    page.keyboard.type("store 01")
    expect(rows(page)).to_have_count(10)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(rows(page).nth(2)).to_be_focused()
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("Enter")
    expect(rows(page).nth(2)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#slate h3")).to_have_text("store 012")
    page.keyboard.press("End")
    expect(rows(page).last).to_be_focused()
    order = ["#slate", "#slate a", "#tails-stream", "#tails-filter", "#tails-pause"]
    for selector in order:
        page.keyboard.press("Tab")
        focused(selector)
    page.keyboard.press("Space")
    expect(page.locator("#tails-pause")).to_have_attribute("aria-pressed", "true")
    group = "#letters-groups > li:first-child > details"
    order = ["#tails-scroll", "#letters-filter", "#letters-scroll", f"{group} > summary"]
    for selector in order:
        page.keyboard.press("Tab")
        focused(selector)
    page.keyboard.press("Enter")
    expect(page.locator(group).locator("tbody tr").first).to_be_visible()  # made when it opens
    order = [".retry button", "tbody tr:first-child a", "tbody tr:first-child summary"]
    for selector in order:
        page.keyboard.press("Tab")
        expect(page.locator(group).locator(selector).first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(group).locator("pre").first).to_be_visible()


def test_a_hidden_tab_asks_for_nothing(page: Page) -> None:
    """While the tab is hidden no status is asked for, and when it is seen again it is."""
    show = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.clock.install()
    with page.expect_request("**/status"):
        pass  # the last one by the real clock: from here on its time is ours
    with page.expect_request("**/status"):
        page.clock.run_for(2_000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    page.evaluate(show, True)
    page.clock.run_for(10_000)
    assert "/status" not in asked
    with page.expect_request("**/status"), page.expect_request("**/tail?*"):
        page.evaluate(show, False)


def test_a_server_that_goes_and_comes_back(chromium: Browser, tmp_path: Path) -> None:
    """Without a server a banner says so and the figures stay. When it is back everything
    continues."""
    shop = stocked(tmp_path / "shop")
    server = ServerChild.start(ServerOptions(shop.path, port=0))
    gone = "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY"
    with opened(chromium, server.url, expected=gone) as page:
        expect(rows(page)).to_have_count(50)
        slate = choose(page, "store 001")
        expect(slate.locator("pre")).to_contain_text('"count": 1')
        server.stop()
        banner = page.get_by_role("alert")
        expect(banner).to_have_text("The server does not answer; trying again")
        expect(page.locator("#badge")).to_have_text("no answer")
        expect(figure(page, "Slates")).to_have_text("124")
        batch = shop.count({"store 001": {"count": 1_001}})
        shop.milestones(("while it was gone", None))
        server = ServerChild.start(ServerOptions(shop.path, port=urlsplit(server.url).port or 0))
        try:
            expect(banner).to_be_hidden()
            expect(page.locator("#badge")).to_have_text("running")
            expect(figure(page, "Batch")).to_have_text(str(batch))
            expect(slate.locator("pre")).to_contain_text('"count": 1001')
            expect(page.locator("#tails-rows")).to_contain_text("while it was gone")
        finally:
            server.stop()


def test_behind_a_token(chromium: Browser, tmp_path: Path) -> None:
    """Logged in with the token as its password, a browser gets the whole page, its streams too."""
    token = "correct-horse-battery"
    with served(stocked(tmp_path / "shop").path, token=token) as url:
        login = {"username": "me", "password": token}
        with opened(chromium, url, http_credentials=login) as page:
            slate = choose(page, "store 002")
            expect(slate.locator("pre")).to_contain_text('"count": 2')
            expect(page.locator("#tails-rows tr")).to_have_count(20)


def test_a_store_without_a_description(chromium: Browser, tmp_path: Path) -> None:
    """If a store has no description of its application, its slates are shown, and the page says
    what is missing."""
    made = MadeStore(tmp_path / "bare", {"count": "dict"}, app="bare")
    made.commit({"count": {"a": {"count": 1}}})
    with (
        served(made.path) as url,
        opened(chromium, url, expected="status of 404", viewport=SMALL) as page,
    ):
        expect(rows(page)).to_have_text('a{"count":1}')
        expect(page.locator("#graph")).to_contain_text("does not say what its application is")
        expect(page.locator("#badge")).to_have_text("stopped")
        expect(page.get_by_text("None: every event so far was handled.")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= SMALL["width"]
