"""The operator's part of the page, which shows problems, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import opened
from jobs_store import JobStore, begins
from payments_store import SECONDS, Payments
from playwright.sync_api import Browser, Locator, Page, expect
from served import served

from millstream import __version__
from millstream.letters.retry_log import retry_letters
from millstream.letters.selection import LetterFilter
from millstream.log.stream_logs import FolderLogs
from millstream.server.access.grants import TokenEntry, hash_of, written_tokens

expect.set_options(timeout=10_000)
LARGE = {"width": 1400, "height": 900}


@pytest.fixture
def store(tmp_path: Path) -> Payments:
    return Payments(tmp_path / "store")


@pytest.fixture
def url(store: Payments) -> Iterator[str]:
    with served(store.path) as url:
        yield url


@pytest.fixture
def page(chromium: Browser, url: str) -> Iterator[Page]:
    with opened(chromium, url, viewport=LARGE) as page:
        expect(page.locator("#badge")).to_have_text("running")
        yield page


def node(page: Page, name: str) -> Locator:
    """A node of the graph."""
    return page.locator("#graph .node", has=page.get_by_text(name, exact=True))


def pills(page: Page, name: str) -> Locator:
    return node(page, name).locator(".pill")


def test_outputs_and_actions_are_nodes_with_their_address_and_state(
    page: Page, store: Payments
) -> None:
    """A sink and an action show where they go; one that fails is marked, and the mark goes when it
    works again."""
    expect(node(page, "flagged")).to_contain_text("sqlite:flagged.db")
    expect(node(page, "notify")).to_contain_text("webhook:http://hooks.test")
    expect(page.locator("#graph .pill")).to_have_count(0)
    store.sink_fails("disk is full")
    store.action_fails(3, "503 Service Unavailable")
    expect(pills(page, "flagged")).to_have_text(["failing"])
    expect(pills(page, "notify")).to_have_text(["failing", "3 waiting"])
    expect(page.locator("#attention li")).to_contain_text(
        ["sink 'flagged' fails", "action 'notify' fails, 7 tries so far"]
    )
    page.get_by_text("All numbers", exact=True).click()
    outputs = page.get_by_role("table", name="Outputs").get_by_role("row")
    expect(outputs.nth(1)).to_contain_text("disk is full")
    expect(outputs.nth(2)).to_contain_text("failing after 7 tries: 503 Service Unavailable")
    store.sink_fails(None)
    expect(pills(page, "flagged")).to_have_count(0)


def test_badges_at_functions(page: Page, store: Payments) -> None:
    """Dead letters, late events and those that wait stand at the function, the gravest first."""
    store.fail("card 1", "card 2", error="ValueError: no amount")
    store.batch(waiting_at={"by_card": 12}, late_at={"by_card": 7}, late=7)
    expect(pills(page, "score")).to_have_text(["2 dead"])
    expect(pills(page, "by_card")).to_have_text(["7 late", "12 waiting"])
    store.fail("card 3", error="KeyError: 'currency'", function="by_card")
    expect(pills(page, "by_card")).to_have_count(3)
    last, edge = pills(page, "by_card").last.bounding_box(), page.locator("#graph .label").last
    label = edge.bounding_box()
    assert last is not None
    assert label is not None
    assert last["x"] + last["width"] <= label["x"]


def test_a_job_is_one_node_that_opens(chromium: Browser, tmp_path: Path) -> None:
    """The functions of a job show when its node or its button is pressed; again, and they go."""
    made = JobStore(tmp_path / "store")
    made.tell(begins("web1", 0), begins("web1", 40))
    with served(made.path) as url, opened(chromium, url, viewport=LARGE) as page:
        expect(node(page, "errors").first).to_contain_text("job, 3 nodes")
        expect(node(page, "errors").locator(".pill")).to_have_text(["2 silent"])
        expect(node(page, "errors.root")).to_have_count(0)
        page.locator("#graph .part .note").first.click()
        expect(node(page, "errors.root")).to_be_visible()
        closing = page.get_by_role("button", name="Close errors")
        expect(closing).to_be_focused()
        closing.press("Enter")
        expect(node(page, "errors.root")).to_have_count(0)
        expect(page.get_by_role("button", name="Open errors")).to_be_focused()


def test_a_spike_does_not_flatten_the_latency(page: Page, store: Payments) -> None:
    """The first batch of all is slow: its latency is written at the top, and the axis is that of
    the others; the charts go back an hour when they are asked to."""
    store.batch(events=10, latency=90 * SECONDS)
    peak = page.locator("#latency .peak")
    reading = page.locator("#latency .reading")
    expect(reading).to_contain_text("90.0s")
    history = {
        "times": list(range(1_000, 1_060)),
        "events": [1.0] * 60,
        "p50": [0.05] * 60,
        "p99": [90.0] * 10 + [0.08] * 50,
    }
    page.route("**/history?*", lambda route: route.fulfill(json=history))
    expect(peak).to_have_text("▲ 90.0 s")
    expect(reading).to_have_text("p5050msp9980ms")
    expect(page.locator("#latency .grid")).to_contain_text("100 ms")
    with page.expect_request("**/history?seconds=3600&step=15"):
        page.get_by_role("button", name="1 h").click()
    expect(page.get_by_role("button", name="1 h")).to_have_attribute("aria-pressed", "true")


def test_letters_by_function_and_error(page: Page, store: Payments) -> None:
    """A group has a count; the filter looks at the function, the error, the key and the value."""
    store.fail("card 1", "card 2", error="ValueError: no amount")
    store.fail("card 3", error="KeyError: 'currency'", function="by_card")
    groups = page.locator("#letters-groups > li > details > summary")
    expect(groups).to_contain_text(["1by_cardKeyError: 'currency'", "2scoreValueError: no amount"])
    expect(page.locator("#letters-state")).to_have_text("3 letters in 2 groups")
    page.get_by_label("Filter", exact=True).last.fill("CARD 2")
    expect(groups).to_contain_text(["1scoreValueError: no amount"])
    page.get_by_label("Filter", exact=True).last.fill("nothing like it")
    expect(page.locator("#letters-none")).to_have_text("No letter has “nothing like it” in it.")


def test_a_group_is_retried(page: Page, store: Payments) -> None:
    """The page asks before it retries letters, says how many, and retries none twice."""
    store.fail("card 1", "card 2", error="ValueError: no amount")
    store.fail("card 3", error="KeyError: 'currency'")
    group = page.locator("#letters-groups > li", has_text="ValueError")
    group.locator("summary").first.click()
    group.get_by_role("button", name="Retry …").click()
    expect(group.get_by_role("status")).to_have_text("Retry 2 letters of score?")
    group.get_by_role("button", name="Cancel").click()
    group.get_by_role("button", name="Retry …").click()
    group.get_by_role("button", name="Retry", exact=True).click()
    expect(group.get_by_role("status")).to_have_text("2 letters retried.")
    group.get_by_role("button", name="Retry …").click()
    expect(group.get_by_role("status")).to_have_text(
        "There is nothing to retry. 2 letters were retried before."
    )


def test_letters_that_were_retried_are_marked_and_the_strip_clears(
    page: Page, store: Payments
) -> None:
    """As the command line marks them; what is left is named until it was retried too."""
    store.fail("card 1", "card 2", error="ValueError: no amount")
    store.fail("card 3", error="KeyError: 'currency'")
    strip = page.locator("#attention")
    expect(strip).to_contain_text("3 dead letters (score 3)")
    retry_letters(FolderLogs(store.path / "logs"), LetterFilter(error="ValueError"), {})
    expect(strip).to_contain_text("1 dead letter left of 3")
    group = page.locator("#letters-groups > li", has_text="ValueError")
    expect(group.locator("summary").first).to_contain_text("retried")
    group.locator("summary").first.click()
    expect(group.get_by_text("retried", exact=True)).to_have_count(2)
    other = page.locator("#letters-groups > li", has_text="KeyError")
    expect(other.locator("summary").first).not_to_contain_text("retried")
    retry_letters(FolderLogs(store.path / "logs"), LetterFilter(), {})
    expect(strip).not_to_contain_text("dead letter")


def test_what_an_action_gave_up_is_among_the_letters(page: Page, store: Payments) -> None:
    """By action and error, with a link that opens each; all that the action gave up is put back
    together, and then they are no letters any more."""
    store.fail("card 1", error="ValueError: no amount")
    store.action_gives_up("card 7", "card 8", error="HTTP 503: Service Unavailable")
    store.action_gives_up("card 9", error="HTTP 410: Gone")
    groups = page.locator("#letters-groups > li > details > summary")
    expect(groups).to_contain_text(
        [
            "1action notifyHTTP 410: Gone",
            "2action notifyHTTP 503: Service Unavailable",
            "1scoreValueError: no amount",
        ]
    )
    strip = page.get_by_role("link", name="action 'notify' gave up 3 events")
    expect(strip).to_have_attribute("href", "#letters")
    group = page.locator("#letters-groups > li", has_text="503")
    group.locator("summary").first.click()
    expect(group.locator("tbody tr")).to_have_count(2)
    expect(group).to_contain_text("given up after 3 tries")
    group.get_by_role("link", name="1", exact=True).click()
    expect(page.locator("#letters-groups .linked")).to_contain_text("card 8")
    assert page.url.endswith("#letter=notify/1")
    group.get_by_role("button", name="Retry …").click()
    expect(group.get_by_role("status")).to_have_text("Retry 3 letters of action notify?")
    group.get_by_role("button", name="Retry", exact=True).click()
    expect(groups).to_contain_text(["1scoreValueError: no amount"])
    expect(page.locator("#graph .pill")).to_have_text(["1 dead", "3 waiting"])


def test_a_token_that_may_only_read_cannot_retry(chromium: Browser, store: Payments) -> None:
    """The server's refusal is shown where the button is."""
    store.fail("card 1", error="ValueError: no amount")
    token = "only-for-reading-this"
    file = store.path.parent / "tokens.toml"
    entry = TokenEntry(may=["read"], sha256=[hash_of(token.encode())])
    file.write_text(written_tokens({"dashboard": entry}))
    login = {"username": "me", "password": token}
    with (
        served(store.path, tokens=file) as url,
        opened(chromium, url, expected="status of 403", http_credentials=login) as page,
    ):
        page.locator("#letters-groups summary").first.click()
        page.get_by_role("button", name="Retry …").click()
        expect(page.locator(".retry").get_by_role("status")).to_contain_text("may not")


def test_a_link_leads_to_a_letter(chromium: Browser, store: Payments, url: str) -> None:
    """The number of a letter is a link; whoever opens it sees that letter, an old one too."""
    store.fail("the first", error="ValueError: no amount")
    store.fail(*(f"card {number}" for number in range(600)), error="KeyError: 'currency'")
    with opened(chromium, f"{url}/#letter=0", viewport=LARGE) as page:
        linked = page.locator("#letters-groups .linked")
        expect(linked).to_contain_text("the first")
        expect(linked).to_be_in_viewport()
        expect(linked.locator("pre")).to_be_visible()
        page.locator("#letters-groups > li", has_text="KeyError").locator("summary").first.click()
        page.get_by_role("link", name="600", exact=True).click()
        expect(linked).to_contain_text("card 599")


def flagged(store: Payments, *keys: str) -> None:
    """Records of the output."""
    store.append("flagged", *({"ts": 1, "key": key, "value": {"risk": 98}} for key in keys))


def test_a_tail_with_a_filter(page: Page, store: Payments) -> None:
    """The filter finds older records too, and lets new ones through that have the text."""
    flagged(store, "card 7", *(f"other {number}" for number in range(50)))
    records = page.locator("#tails-rows tr")
    expect(records).to_have_count(51)
    page.locator("#tails-filter").fill("CARD 7")
    expect(records).to_have_count(1)
    expect(records).to_contain_text("card 7")
    flagged(store, "other", "card 77")
    expect(records).to_have_count(2)
    expect(page.locator("#tails-state")).to_have_text("live, filtered")
    page.locator("#tails-filter").fill("nothing like it")
    expect(page.locator("#tails-none")).to_contain_text("No record of flagged has")


def test_a_record_opens(page: Page, store: Payments) -> None:
    """All of a record shows when its row is opened, by pointer or by key, and the tail waits."""
    flagged(store, "card 1", "card 2")
    row = page.locator("#tails-rows tr").first
    row.get_by_text('{"risk":98}').click()
    expect(row.locator("pre")).to_have_text('{\n  "risk": 98\n}')
    expect(page.locator("#tails-state")).to_have_text("paused, 0 new")
    flagged(store, "card 3")
    expect(page.locator("#tails-state")).to_have_text("paused, 1 new")
    page.locator("#tails-scroll").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#tails-rows tr").nth(1).locator("pre")).to_be_visible()


def test_links_to_a_slate_and_a_tail(chromium: Browser, store: Payments, url: str) -> None:
    """The selection is in the address, so the link shows the same to others."""
    flagged(store, "card 1", "card 2")
    key = "a/b?c=%2F#d"
    store.commit({"by_card": {key: {"count": 5}}})
    with opened(chromium, url, viewport=LARGE) as page:
        page.get_by_role("option").filter(has_text=key).click()
        expect(page.locator("#slate pre")).to_contain_text('"count": 5')
        slate = page.url
        page.locator("#tails-filter").fill("card 2")
        expect(page.locator("#tails-rows tr")).to_have_count(1)
        tail = page.url
    assert slate.endswith("#slate=by_card/a%2Fb%3Fc%3D%252F%23d")
    assert tail.endswith("#tail=flagged/card%202")
    with opened(chromium, slate, viewport=LARGE) as page:
        expect(page.locator("#slate h3")).to_have_text(key)
        expect(page.locator("#slate pre")).to_contain_text('"count": 5')
        expect(page.locator("#slate")).to_be_in_viewport()
    with opened(chromium, tail, viewport=LARGE) as page:
        expect(page.locator("#tails-rows tr")).to_have_count(1)
        expect(page.locator("#tails")).to_be_in_viewport()


def test_late_events_lead_to_their_tail(page: Page, store: Payments) -> None:
    store.append("late", {"ts": 1, "stream": "payments", "key": "card 1", "value": {"amount": 3}})
    store.batch(late=1)
    page.get_by_role("link", name="1 event came too late").click()
    expect(page.locator("#tails-stream")).to_have_value("late")
    expect(page.locator("#tails-rows tr")).to_contain_text("card 1")
    expect(page.locator("#tails")).to_be_in_viewport()


def test_the_footer(page: Page, store: Payments) -> None:
    """It shows the version, the store, the server's uptime, and the event time."""
    footer = page.locator("#facts")
    expect(footer).to_contain_text(f"Millstream {__version__} · store {store.path} · server up")
    expect(footer).to_contain_text("horizon 2.00 s behind the clock")


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(chromium: Browser, store: Payments, url: str, scheme: str, width: int) -> None:
    """axe finds nothing at all on a page with much to say, and nothing scrolls sideways."""
    store.sink_fails("disk is full")
    store.action_gives_up("card 3", error="410 Gone")
    store.action_fails(3, "503 Service Unavailable")
    store.fail("card 1", "card 2", error="ValueError: no amount")
    store.batch(waiting_at={"by_card": 12}, late_at={"by_card": 7}, late=7)
    size = {"width": width, "height": 800}
    with opened(chromium, url, viewport=size, color_scheme=scheme, reduced_motion="reduce") as page:
        expect(pills(page, "by_card")).to_have_count(2)
        page.locator("#letters-groups summary").first.click()
        expect(page.locator("#letters-groups tbody tr").first).to_be_visible()
        found = [
            (one["id"], one["impact"], [node["html"] for node in one["nodes"]])
            for one in Axe().run(page).response["violations"]
        ]
        assert found == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
