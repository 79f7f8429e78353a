"""The news of a job for its agents: GET and POST /jobs/{name}/news.

The server follows the stream `NAME.told` of each requested job, once for all clients, and keeps its
content on a `NewsBoard`. Its entries are numbered like the stream's records, so the numbers stay
valid after a restart of the server, which reads the end of the stream again. A request may wait for
news. One task serves all waiting requests; it checks the logs ten times a second.

POST is for a request that names more nodes than fit into a URL.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.errors import MillstreamError
from millstream.nearest import did_you_mean
from millstream.server.http.answers import Refusal, json_answer
from millstream.server.http.paths import Route, query_lists, segment, whole_number
from millstream.server.service import Service
from millstream.server.streams.catalogue import Catalogue
from millstream.server.streams.numbered_records import Numbered
from millstream.trees.messages import LONGEST_WAIT, News, NewsQuestion
from millstream.trees.news_board import NewsBoard

LOOK_SECONDS = 0.1
TAIL = 20_000
"""Records of the stream that are read when the server starts."""
PAGE, PAGE_BYTES = 1_000, 1 << 20
MOST_NODES = 20_000
"""The most nodes that one question may name."""
SUFFIX = ".told"


class _LogRecord(msgspec.Struct):
    """A record of an output's log."""

    value: Any = None


_event = msgspec.json.Decoder(_LogRecord)
_question = msgspec.json.Decoder(NewsQuestion)


class JobNews:
    """The boards of the jobs that were requested. One per server."""

    def __init__(self, service: Service, catalogue: Catalogue) -> None:
        self._service, self._catalogue = service, catalogue
        self._boards: dict[str, NewsBoard] = {}
        self._waiting: dict[asyncio.Event, tuple[str, NewsQuestion]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._reading = asyncio.Lock()

    def routes(self) -> list[Route]:
        return [
            Route("GET", ("jobs", "{name}", "news"), self._get, "agent"),
            Route("POST", ("jobs", "{name}", "news"), self._post, "agent"),
        ]

    async def answer(self, name: str, question: NewsQuestion) -> News:
        """Returns the news for a question, or waits for some; raises Refusal if there is no such
        job."""
        board = await self._up_to_date(name)
        if board.has_news(question) or question.wait <= 0 or self._service.stopping.is_set():
            return board.answer(question)
        woken = asyncio.Event()
        self._waiting[woken] = name, question
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look())
        try:
            async with asyncio.timeout(min(question.wait, LONGEST_WAIT)):
                await woken.wait()
        except TimeoutError:
            pass
        finally:
            del self._waiting[woken]
        return self._boards.get(name, board).answer(question)

    async def _get(self, request: Request) -> Response:
        parameters = query_lists(request, ("node", "life", "after", "wait"), MOST_NODES)
        for name in ("life", "after", "wait"):
            if len(parameters.get(name, ())) > 1:
                raise Refusal(400, f"parameter {name!r} must come once")
        once = {name: values[0] for name, values in parameters.items() if name != "node"}
        after = whole_number(once, "after", 0, 0, 10**18) if "after" in once else None
        wait = float(whole_number(once, "wait", 0, 0, int(LONGEST_WAIT)))
        question = NewsQuestion(parameters.get("node", []), once.get("life", ""), after, wait)
        return json_answer(await self.answer(segment(request, "name"), question))

    async def _post(self, request: Request) -> Response:
        query_lists(request, (), 0)
        try:
            question = _question.decode(await request.body())
        except msgspec.DecodeError as error:
            raise Refusal(400, f"the body must be a question for news as JSON: {error}") from None
        if len(question.nodes) > MOST_NODES:
            raise Refusal(400, f"a question may name at most {MOST_NODES} nodes")
        return json_answer(await self.answer(segment(request, "name"), question))

    async def _up_to_date(self, name: str) -> NewsBoard:
        """Returns the board of a job, with everything that its log has."""
        async with self._reading:
            log = self._log(name)
            board, store = self._boards.get(name), self._service.store.home.facts.id
            if board is None or board.origin != store or not log.start <= board.next <= log.end:
                begin = max(log.start, log.end - TAIL)
                board = self._boards[name] = NewsBoard(store, store, begin)
                await log.locate(begin, self._service)
            while board.next < log.end:
                lines = log.lines(board.next, PAGE, PAGE_BYTES)
                if not lines:
                    break
                for number, line in enumerate(lines, board.next):
                    board.take(_value(line), number)
                await asyncio.sleep(0)  # other requests are served between two pages
            return board

    def _log(self, name: str) -> Numbered:
        stream = name + SUFFIX
        streams = self._catalogue.streams()
        if stream not in streams:
            jobs = [other.removesuffix(SUFFIX) for other in streams if other.endswith(SUFFIX)]
            hint = did_you_mean(name, jobs) if jobs else "the application has none with agents"
            raise Refusal(404, f"there is no job {name[:100]!r} with agents; {hint}")
        return self._catalogue.log_of(stream)

    async def _look(self) -> None:
        """Wakes the requests for which there is news, as long as any request waits."""
        try:
            while self._waiting and not self._service.stopping.is_set():
                for name in {name for name, _ in self._waiting.values()}:
                    try:
                        await self._up_to_date(name)
                    except (MillstreamError, Refusal, OSError):
                        continue  # the next request gets the error
                for woken, (name, question) in list(self._waiting.items()):
                    board = self._boards.get(name)
                    if board is not None and board.has_news(question):
                        woken.set()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._looking = None
            for woken in self._waiting:
                woken.set()


def _value(line: bytes) -> Any:
    try:
        return _event.decode(line).value
    except msgspec.DecodeError:
        return None
