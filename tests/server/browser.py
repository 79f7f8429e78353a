"""A real browser: the system's Chromium, without a window, driven by Playwright.

with launched() as chromium, opened(chromium, url) as page: ...

A page that `opened` gives must stay quiet: an error in its console (a violation of the content
security policy is one), an uncaught exception or a dialog fails the test. A test whose page is
bound to say something, as when the server is gone, says so with `expected`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def launched() -> Iterator[Browser]:
    """The browser, for as long as this lasts."""
    path = shutil.which("chromium")
    assert path is not None, "there is no Chromium to test the page with; run make setup-tests"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, url: str, expected: str = "", **context: Any) -> Iterator[Page]:
    """A page of a fresh browser context at an address; `expected` matches what it may complain of.

    `context` are Playwright's options: viewport, color_scheme, http_credentials and more.
    """
    fresh = browser.new_context(**context)
    fresh.set_default_timeout(10_000)
    page = fresh.new_page()
    heard: list[str] = []
    page.on("pageerror", lambda error: heard.append(f"exception: {error}"))
    page.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
    page.on("dialog", lambda dialog: (heard.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.goto(url)
    try:
        yield page
    finally:
        fresh.close()
    unexpected = [one for one in heard if not (expected and re.search(expected, one))]
    assert unexpected == []
