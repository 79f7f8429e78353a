"""The section of the live page with feeds, in a real browser, on a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import opened
from feeds.stored_feeds import FeedStore
from playwright.sync_api import Browser, Locator, Page, Route, expect
from served import get, served
from shop_store import MARKUP, stocked
from town_store import READERS, town

expect.set_options(timeout=10_000)
WIDE = {"width": 1280, "height": 900}


@pytest.fixture
def made(tmp_path: Path) -> FeedStore:
    return town(tmp_path / "store", k=20)


@pytest.fixture
def url(made: FeedStore) -> Iterator[str]:
    with served(made.path) as url:
        yield url


@pytest.fixture
def page(chromium: Browser, url: str) -> Iterator[Page]:
    """The page with ana's feed; it must stay quiet to the end of the test."""
    with opened(chromium, f"{url}/#feed=ana", viewport=WIDE) as page:
        expect(items(page)).to_have_count(20)
        yield page


def items(page: Page) -> Locator:
    return page.locator("#feed-items > li")


def item(page: Page, words: str) -> Locator:
    """The items that say this."""
    return items(page).filter(has_text=words)


def look_at(page: Page, consumer: str) -> None:
    page.locator("#feed-consumer").fill(consumer)
    page.get_by_role("button", name="Show", exact=True).click()


def post(url: str, *records: dict[str, Any]) -> list[str]:
    """Say this to the feeds; the ids of the posts among it."""
    answers = [httpx.post(f"{url}/feeds/events", json=record, verify=False) for record in records]
    assert {answer.status_code for answer in answers} == {200}, [one.text for one in answers]
    return [one for answer in answers for one in answer.json()["ids"]]


def says(producer: str, text: Any) -> dict[str, Any]:
    return {"kind": "post", "producer": producer, "value": {"text": text}}


def test_the_split_of_the_network(page: Page, url: str) -> None:
    """Shows the pairs on push and on pull over all consumers, and the costs behind that."""
    answers = [get(f"{url}/feeds/{consumer}/follows").json() for consumer in READERS]
    sides = [pair["side"] for answer in answers for pair in answer["follows"]]
    push, pull = sides.count("push"), sides.count("pull")
    assert (push > 0, pull > 0, push + pull) == (True, True, 19)
    pushed, pulled = (f"{round(1000 * part / 19) / 10} %" for part in (push, pull))
    expect(page.locator("#feeds-pairs")).to_have_text("19 pairs")
    expect(page.locator("#feeds-pushed")).to_have_text(f"push {push} ({pushed})")
    expect(page.locator("#feeds-pulled")).to_have_text(f"{pull} ({pulled}) pull")
    bar = page.get_by_role("img", name=f"{pushed} of the pairs are on push, {pulled} on pull")
    expect(bar).to_be_visible()
    expect(page.locator("#feeds-facts")).to_contain_text("Producers5")
    expect(page.locator("#feeds-facts")).to_contain_text("Consumers4")
    expect(page.locator("#feeds-state")).to_contain_text("per-producer coherency · policy hybrid")
    expect(page.locator("#feeds-rule")).to_contain_text("A pair is on push if")


def test_an_item_says_how_and_why(page: Page) -> None:
    """Each item has how it came here; the rates of its pair and their costs are in words, and agree
    with it."""
    pulled = item(page, "harbour weather").first
    expect(pulled.locator(".how")).to_have_text("pull")
    expect(pulled.locator(".why")).to_have_text(
        re.compile(
            r"^ana looks [\d.]+ times an hour, harbour weather posts [\d.]+ times an hour, "
            r"a push counts as 1.3 pulls: pushing would cost [\d.]+ times as much\.$"
        )
    )
    pushed = item(page, "Tram line 7").first
    expect(pushed.locator(".how")).to_have_text("push")
    expect(pushed.locator(".why")).to_have_text(
        re.compile(r"^ana looks .+, Tram line 7 posts .+: pulling would cost [\d.]+ times as much")
    )
    expect(pushed.locator(".text")).to_have_text("Service is back to normal.")
    follows = page.locator("#follows-list > li")
    expect(follows.filter(has_text="harbour weather")).to_have_text("harbour weatherpull")
    expect(follows.filter(has_text="Tram line 7")).to_have_text("Tram line 7push")
    expect(page.locator("#follows-count")).to_have_text("4 push, 1 pull")


def test_a_post_shows_at_once(page: Page, made: FeedStore, url: str) -> None:
    """An acknowledged post shows before a batch takes it in, and is marked. Nothing else moves."""
    before = items(page).first.text_content()
    post(url, says("Marta's kitchen", "One bun is left."))
    expect(items(page).first).to_contain_text("One bun is left.")
    expect(items(page).first.locator(".how")).to_have_text("pending")
    expect(items(page).first.locator(".why")).to_contain_text(
        "not taken in yet; the pair is on push"
    )
    expect(items(page).nth(19)).to_be_attached()
    assert items(page).nth(1).text_content() == before
    expect(page.locator("#announcer")).to_have_text("1 new item")
    made.batch()
    made.settle()
    page.reload()
    expect(item(page, "One bun is left.").locator(".how")).to_have_text("push")


def test_what_is_deleted_is_gone_at_once(page: Page, made: FeedStore, url: str) -> None:
    """A post that was deleted leaves the page by itself; one that was changed says that it was."""
    first, second = post(url, says("library", "Closed today."), says("library", "Open again."))
    expect(item(page, "Closed today.")).to_have_count(1)
    post(url, {"kind": "delete", "producer": "library", "id": first})
    expect(item(page, "Closed today.")).to_have_count(0)
    changed = {"kind": "edit", "producer": "library", "id": second, "value": {"text": "Open late."}}
    post(url, changed)
    expect(item(page, "Open late.")).to_contain_text("edited")
    expect(item(page, "Open again.")).to_have_count(0)
    made.batch()
    made.settle()
    post(url, {"kind": "delete", "producer": "library", "id": second})
    expect(item(page, "Open late.")).to_have_count(0)


@pytest.mark.parametrize(("coherency", "pages"), [("", [20, 20, 9]), ("global", [20, 20, 20, 9])])
def test_older_and_newer(page: Page, url: str, coherency: str, pages: list[int]) -> None:
    """Pages go back to the first post and up again without a gap or a repetition; on an older page
    new items are counted, and what is read stays where it is."""
    page.get_by_label("Coherency").select_option(coherency)
    expect(page.locator("#feed-about")).to_contain_text(coherency or "per-producer")
    older, newer = (page.get_by_role("button", name=name) for name in ("Older", "Newer"))
    expect(items(page)).to_have_count(pages[0])
    seen = [items(page).all_text_contents()]
    for size in pages[1:]:
        older.click()
        expect(item(page, seen[-1][0])).to_have_count(0)
        expect(items(page)).to_have_count(size)
        seen.append(items(page).all_text_contents())
    expect(older).to_be_disabled()
    assert [len(one) for one in seen] == pages
    assert len({one for texts in seen for one in texts}) == sum(pages)
    post(url, says("library", "New here."), says("library", "And this."))
    expect(page.get_by_role("button", name="2 new items")).to_be_visible()
    assert items(page).all_text_contents() == seen[-1]
    for texts in reversed(seen[:-1]):
        newer.click()
        expect(items(page)).to_have_text(texts)
    newer.click()
    expect(items(page).first).to_contain_text("And this.")
    expect(newer).to_be_disabled()
    expect(page.get_by_role("button", name="Newest")).to_be_hidden()


def test_unread_items_are_marked(page: Page, url: str) -> None:
    """Items after the last read one are marked and counted."""
    expect(page.locator("#feed-about")).to_contain_text("69 unread")
    feed = get(f"{url}/feeds/ana", params={"limit": 5, "coherency": "global"}).json()
    upto = [feed["items"][3][field] for field in ("ts", "producer", "id")]
    post(url, {"kind": "seen", "consumer": "ana", "upto": upto})
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#feed-about")).to_contain_text("3 unread")
    expect(page.locator("#feed-items > li[data-unread]")).to_have_count(3)
    expect(items(page).nth(2)).to_contain_text("new")
    post(url, says("library", "Late night reading."))
    expect(page.locator("#feed-about")).to_contain_text("4 unread")


def test_any_text_is_text(page: Page, url: str) -> None:
    """Names and posts with markup show as they are; a long text is cut until it is asked for; other
    values show as JSON, with all their digits."""
    post(url, {"kind": "follow", "consumer": MARKUP, "producer": MARKUP})
    post(url, says(MARKUP, MARKUP + " " + "long " * 400))
    post(url, {"kind": "post", "producer": MARKUP, "value": {"n": 9_007_199_254_740_993}})
    look_at(page, MARKUP)
    expect(items(page)).to_have_count(2)
    expect(items(page).first.locator(".rest")).to_have_text('{"n":9007199254740993}')
    expect(items(page).last.locator(".by")).to_have_text(MARKUP)
    expect(items(page).last.locator(".text")).to_contain_text(MARKUP)
    more = page.get_by_role("button", name="Show all 2,026 characters")
    more.click()
    expect(items(page).last.locator(".text")).to_have_text(f"{MARKUP} {'long ' * 400}".strip())
    page.get_by_role("button", name="Show less").click()
    expect(more).to_be_visible()
    assert page.evaluate("document.querySelectorAll('script, img').length") == 1


def test_a_consumer_by_name_and_by_address(page: Page, url: str) -> None:
    """Typing offers names that are known; the address leads to the feed; whoever follows nobody has
    an empty one, and nobody has none."""
    page.locator("#feed-consumer").fill("Zo")
    expect(page.locator("#feed-known option")).to_have_count(1)
    look_at(page, "Zofia Kowalska")
    expect(page.get_by_role("heading", name="Feed of Zofia Kowalska")).to_be_visible()
    expect(page.locator("#follows-count")).to_have_text("5 push, 0 pull")
    assert page.url.endswith("#feed=Zofia%20Kowalska")
    look_at(page, "a stranger")
    expect(page.locator("#feed-none")).to_contain_text("Nothing is in the feed of a stranger")
    expect(page.locator("#follows-count")).to_have_text("nobody")
    look_at(page, "")
    expect(page.locator("#feed-none")).to_have_text("Name a consumer to see its feed, live.")
    expect(page.locator("#feed-head")).to_be_hidden()
    page.evaluate("location.hash = 'feed=ben'")
    expect(page.get_by_role("heading", name="Feed of ben")).to_be_visible()


def test_what_went_while_nobody_looked(page: Page, url: str) -> None:
    """A tab that was hidden reads the feed again: deleted items are gone, and new ones are
    there."""
    [gone] = post(url, says("library", "Closed today."))
    expect(item(page, "Closed today.")).to_have_count(1)
    turn = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(turn, True)
    post(url, {"kind": "delete", "producer": "library", "id": gone})
    post(url, says("library", "Open tomorrow."))
    page.evaluate(turn, False)
    expect(item(page, "Open tomorrow.")).to_have_count(1)
    expect(item(page, "Closed today.")).to_have_count(0)
    post(url, says("library", "Still live."))
    expect(item(page, "Still live.")).to_have_count(1)


def test_what_was_pending_is_taken_in(page: Page, made: FeedStore, url: str) -> None:
    """After the batch that takes a post in, the page says by itself how it is read now; after one
    that unfollows, nothing of the producer is left."""
    post(url, says("harbour weather", "Calm."), says("Radio Lumen", "Good evening."))
    for words in ("Calm.", "Good evening."):
        expect(item(page, words).locator(".how")).to_have_text("pending")
    page.locator("#feed-scroll").scroll_into_view_if_needed()
    made.batch()
    made.settle()
    expect(item(page, "Calm.").locator(".how")).to_have_text("pull")
    expect(item(page, "Good evening.").locator(".how")).to_have_text("push")
    post(url, {"kind": "unfollow", "consumer": "ana", "producer": "harbour weather"})
    expect(item(page, "Calm.")).to_have_count(0)
    expect(page.locator("#feed-items .key", has_text="harbour weather")).to_have_count(0)


def test_many_follows(page: Page, url: str) -> None:
    """Whom a consumer follows comes a page at a time, with how many there are in all."""
    pairs = [{"consumer": "kim", "producer": f"producer {number:03d}"} for number in range(70)]
    post(url, *({"kind": "follow", **pair} for pair in pairs))
    look_at(page, "kim")
    expect(page.locator("#follows-count")).to_have_text("70 producers")
    expect(page.locator("#follows-list > li")).to_have_count(50)
    page.get_by_role("button", name="More").click()
    expect(page.locator("#follows-count")).to_have_text("0 push, 70 pull")


def test_by_way_of_another(page: Page, made: FeedStore, url: str) -> None:
    """A post that is here by an aggregated producer says by which."""
    post(url, {"kind": "aggregate", "producer": "town news", "sources": ["library"]})
    post(url, {"kind": "follow", "consumer": "kim", "producer": "town news"})
    made.batch()
    made.settle()
    post(url, says("library", "Open tonight."))
    made.batch()
    made.settle()
    look_at(page, "kim")
    expect(item(page, "Open tonight.").locator(".by")).to_have_text("library via town news")
    expect(item(page, "Open tonight.").locator(".why")).to_contain_text("town news posts ")


def test_several_feeds(chromium: Browser, tmp_path: Path) -> None:
    """An application may have several: one chooses, and each has its own network."""
    made = FeedStore(tmp_path / "store", "feeds", "news", decide="per-consumer")
    made.append({"kind": "follow", "at": 1_700_000_000_000_000, "consumer": "a", "producer": "b"})
    made.batch()
    made.settle()
    with served(made.path) as url, opened(chromium, url, viewport=WIDE) as page:
        expect(page.locator("#feeds-pairs")).to_have_text("1 pair")
        expect(page.locator("#feeds-rule")).to_contain_text("All of a feed is on push if")
        page.locator("#feeds-choice").select_option("news")
        expect(page.locator("#feeds-pairs")).to_have_text("Nobody follows anybody yet.")
        expect(page.locator("#feeds-split")).to_be_hidden()


def test_rates_in_words(page: Page) -> None:
    """Two rates are told in one unit where that suits, and each in its own where it does not."""
    told = page.evaluate(
        """async (all) => {
            const { why } = await import("/page/reasons.js");
            const of = { consumer: "ana", producer: "bo", how: "push", policy: "hybrid" };
            return all.map(([looks, posts]) => {
                const reason = { side: "push", query_rate: looks, event_rate: posts, ratio: 1 };
                return why(reason, of).map((part) => part.name ?? part).join("");
            });
        }""",
        [[0.0004, 0.0002], [12, 1 / 777_600], [1 / 3_600, 2 / 3_600], [0, 0.5], [0.5, 0]],
    )
    assert [one.partition(", a push counts as 1 pull")[0] for one in told] == [
        "ana looks 35 times a day, bo posts 17 times a day",
        "ana looks 12 times a second, bo posts once in 9 days",
        "ana looks once an hour, bo posts twice an hour",
        "ana is not known to look, bo posts 30 times a minute",
        "ana looks 30 times a minute, bo posts nothing lately",
    ]


def test_coherency_is_asked_for(page: Page) -> None:
    """Another coherency than the application's shows another feed."""
    expect(page.locator("#feed-about")).to_contain_text("per-producer coherency")
    page.get_by_label("Coherency").select_option("global")
    expect(page.locator("#feed-about")).to_contain_text("global coherency")
    expect(items(page)).to_have_count(20)


def test_what_is_left_out_is_said(page: Page) -> None:
    """An incomplete answer is marked above the items. A refused one has a message in their
    place."""

    def partly(route: Route) -> None:
        answer = route.fetch().json()
        left = {"producers": 3, "reason": "a read pulls from at most 10,000"}
        route.fulfill(json={**answer, "complete": False, "left_out": left})

    page.route(re.compile(r"/feeds/ben\?"), partly)
    look_at(page, "ben")
    notice = page.get_by_text("This is not all of the feed: 3 producers left out, a read pulls")
    expect(notice).to_be_visible()
    look_at(page, "ana")
    expect(items(page)).to_have_count(20)
    expect(notice).to_be_hidden()


def test_a_name_that_is_refused(chromium: Browser, url: str) -> None:
    """The server's reason shows in the place of the items."""
    with opened(chromium, url, expected="400", viewport=WIDE) as page:
        look_at(page, "x" * 300)
        expect(page.locator("#feed-none")).to_contain_text("must be text of 1 to 200 characters")


def test_feeds_by_keyboard(page: Page) -> None:
    """The box, the items, the pager and the follows are reached by Tab; Enter shows a feed."""
    page.locator("#feed-consumer").fill("ben")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Feed of ben")).to_be_visible()
    expect(items(page)).to_have_count(20)
    reached = set()
    for _ in range(8):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"feed-coherency", "feed-raw", "feed-scroll", "feed-older"} <= reached
    page.get_by_role("button", name="Older").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#announcer")).to_contain_text("older item")
    expect(page.locator("#feed-scroll")).to_be_focused()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_accessible_feeds(chromium: Browser, url: str, scheme: str, width: int) -> None:
    """axe finds nothing serious in light and dark, large and small, and a small screen never
    scrolls sideways."""
    post(url, says("library", "x" * 500), says("library", "Soon."))
    size = {"width": width, "height": 800}
    options: dict[str, Any] = {"color_scheme": scheme, "reduced_motion": "reduce"}
    with opened(chromium, f"{url}/#feed=ana", viewport=size, **options) as page:
        expect(items(page)).to_have_count(20)
        expect(page.locator("#feeds-pairs")).to_have_text("19 pairs")
        found = [
            (one["id"], one["impact"], [node["html"] for node in one["nodes"]])
            for one in Axe().run(page).response["violations"]
        ]
        assert [one for one in found if one[1] in ("serious", "critical")] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_feeds_there_is_no_section(chromium: Browser, tmp_path: Path) -> None:
    """An application that has none shows nothing of feeds."""
    with served(stocked(tmp_path / "shop").path) as url, opened(chromium, url) as page:
        expect(page.locator("#slates-list li").first).to_be_visible()
        expect(page.locator("#feeds")).to_be_hidden()
