"""All of an agent that talks to others: the root, its parent, its children. One a process.

Each job has a `JobLink`: it hears the job's news, sends the panes of this node, and merges those of
children if this agent serves. They share one server and one way up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec

from millstream.agent.options import Options
from millstream.agent.outbox import Outbox, Say
from millstream.agent.parent import Parent
from millstream.agent.sending import Sender
from millstream.agent.serving import Asked, Serving
from millstream.agent.told import Told
from millstream.agent.ways import LaidWays, Ways
from millstream.agent.wire import Answer, Way, Wire, answer_of
from millstream.trees.messages import NewsQuestion
from millstream.windows.placed import PlacedJob

_question = msgspec.json.Decoder(NewsQuestion)


class JobLink:
    """What one job of an agent has to do with others."""

    def __init__(
        self,
        placed: PlacedJob,
        node: str,
        outbox: Outbox,
        ways: Ways,
        parent: Callable[[Told], Parent] | None,
        say: Say,
        clock: Callable[[], float],
    ) -> None:
        self.told = Told(ways, placed, node, say, clock)
        self.parent = None if parent is None else parent(self.told)
        merging = self.parent

        def up() -> Way | None:
            return ways.up(placed.name) if merging is None else merging

        def failed(way: Way) -> None:
            if isinstance(way, Wire):
                ways.failed(way)

        self.sender = Sender(
            outbox,
            placed,
            root=ways.root,
            parent=up,
            told=self.told,
            say=say,
            failed=failed,
            clock=clock,
        )
        self._name, self._ways = placed.name, ways

    def start(self) -> None:
        for thread in self._threads():
            thread.start()

    def check(self) -> None:
        for thread in self._threads():
            thread.check()

    def stop(self, seconds: float) -> None:
        for thread in reversed(self._threads()):
            thread.stop(seconds)

    def status(self) -> dict[str, Any]:
        """The part of the agent's status that says how panes go out."""
        sender, parent = self.sender, self.parent
        direct = sender.direct if parent is None else parent.direct
        up = self._ways.up(self._name)
        told: dict[str, Any] = {
            "sending_paused": sender.paused or (parent.paused if parent else None),
            "to": "root" if direct or up is None else up.name,
        }
        if parent is not None:
            told["children"] = parent.children()
        return told

    def _threads(self) -> list[Told | Sender | Parent]:
        return [self.told, self.sender, *([] if self.parent is None else [self.parent])]


class Network:
    """The links of an agent's jobs, and what they share."""

    def __init__(
        self, options: Options, say: Say, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._options, self._say, self._clock = options, say, clock
        self._links: dict[str, JobLink] = {}
        self._stopping = False
        root = Wire(options.root, options.token, name="the root")
        up = None
        if options.parent is not None:
            node, url = options.parent
            up = Wire(url, options.token, timeout=10.0, name=f"parent {node}")
        self.ways: Ways = LaidWays(root, up, merges=options.serve is not None)
        self._serving: Serving | None = None
        if options.serve is not None:
            self._serving = Serving(options.serve, options.token, self._answer)

    @property
    def address(self) -> tuple[str, int] | None:
        """Where it listens for children."""
        return None if self._serving is None else self._serving.address

    def link(self, placed: PlacedJob, outbox: Outbox) -> JobLink:
        """Connect a job; to be started once it is known that the job can run."""
        options = self._options

        def parent(told: Told) -> Parent:
            return Parent(
                placed,
                options.node,
                ways=self.ways,
                told=told,
                children=lambda: options.children,
                depth=lambda: 0 if options.parent is None else 1,
                most_bytes=options.memory // 2,
                say=self._say,
                clock=self._clock,
            )

        serves = None if self._serving is None else parent
        link = JobLink(placed, options.node, outbox, self.ways, serves, self._say, self._clock)
        self._links[placed.name] = link
        return link

    def unlink(self, job: str, seconds: float = 1.0) -> None:
        """A job has ended here."""
        link = self._links.pop(job, None)
        if link is not None:
            link.stop(seconds)

    def start(self) -> None:
        if self._serving is not None:
            self._serving.start()

    def check(self) -> None:
        """Raise what has ended a thread, if it was not `stop`."""
        for link in list(self._links.values()):
            link.check()

    def stop(self, seconds: float = 1.0) -> None:
        """Take nothing more, send on what is here if there is time, and end."""
        self._stopping = True
        if self._serving is not None:
            self._serving.stop()
        for job in list(self._links):
            self.unlink(job, seconds)

    def _answer(self, asked: Asked) -> Answer:
        """What a child is told; for each job, as the root would."""
        if self._stopping:
            return answer_of(503, {"error": f"node {self._options.node!r} is about to end"}, 1.0)
        words = [unquote(word) for word in asked.path.split("/")[1:]]
        match asked.method, words:
            case "POST", ["streams", stream] if stream.endswith(".panes"):
                link = self._links.get(stream.removesuffix(".panes"))
                if link is not None and link.parent is not None:
                    return link.parent.post(asked.path, asked.body, asked.key)
            case "GET" | "POST", ["jobs", job, "news"]:
                link = self._links.get(job)
                if link is not None:
                    return _news(link, asked)
        jobs = ", ".join(sorted(self._links)) or "none"
        error = (
            f"this is the agent of node {self._options.node!r}, a parent for the jobs {jobs}: it "
            f"takes /streams/JOB.panes and /jobs/JOB/news; got {asked.path[:200]!r}"
        )
        return answer_of(404, {"error": error})


def _news(link: JobLink, asked: Asked) -> Answer:
    try:
        if asked.method == "POST":
            question = _question.decode(asked.body)
        else:
            given = parse_qs(asked.query, strict_parsing=bool(asked.query))
            after = given.get("after")
            question = NewsQuestion(
                given.get("node", []),
                given.get("life", [""])[0],
                None if after is None else int(after[0]),
                float(given.get("wait", ["0"])[0]),
            )
    except (ValueError, msgspec.DecodeError) as error:
        return answer_of(400, {"error": f"this is no question for news: {error}"})
    return answer_of(200, link.told.answer(question))
