"""The part of an agent that talks to the root, to its parent and to its children. One per process.

Each job has a `JobLink`: it follows the job's news, sends the panes of this node, and merges those
of children if this agent serves. All links share one server and one way up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from urllib.parse import parse_qs, unquote

import msgspec
from msgspec import UNSET

from millstream.agent.delivery.outbox import Outbox, Say
from millstream.agent.delivery.root_decisions import RootDecisions
from millstream.agent.delivery.sender import Sender
from millstream.agent.delivery.ways import LaidWays, Ways
from millstream.agent.delivery.wire import Answer, ServerWire, Way, answer_of, refusal_of
from millstream.agent.job_host import JobHost
from millstream.agent.job_status import SendingStatus
from millstream.agent.options import AgentOptions
from millstream.agent.tree.membership import ANSWER_WITHIN, Membership
from millstream.agent.tree.parent import Parent
from millstream.agent.tree.parent_server import ChildRequest, ParentServer, advertised
from millstream.errors import CommandError
from millstream.trees.messages import JobTicket, NewsQuestion
from millstream.trees.tree_member import TreeMember
from millstream.trees.tree_placement import DEEPEST
from millstream.wall_clock import wall_clock
from millstream.windows.placed import PlacedJob

_question = msgspec.json.Decoder(NewsQuestion)


class JobLink:
    """The connections of one job to the root, the parent and the children."""

    def __init__(
        self,
        placed: PlacedJob,
        node: str,
        outbox: Outbox,
        ways: Ways,
        parent: Callable[[RootDecisions], Parent] | None,
        say: Say,
        clock: Callable[[], float],
        levels: int = 1,
        gone: Callable[[], None] = lambda: None,
    ) -> None:
        """`levels`: how many parents may be above it. `gone` is called once it has stopped."""
        self._gone = gone
        self.decisions = RootDecisions(ways, placed, node, say, clock)
        self.parent = None if parent is None else parent(self.decisions)
        merging = self.parent

        def up() -> Way | None:
            return ways.up(placed.name) if merging is None else merging

        def failed(way: Way) -> None:
            if isinstance(way, ServerWire):
                ways.failed(way)

        def lost(way: Way) -> bool:
            return isinstance(way, ServerWire) and ways.lost(way)

        self.sender = Sender(
            outbox,
            placed,
            root=ways.root,
            parent=up,
            decisions=self.decisions,
            say=say,
            failed=failed,
            lost=lost,
            levels=levels,
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
        self._gone()

    def status(self) -> SendingStatus:
        """Returns the part of the agent's status about sending."""
        sender, parent = self.sender, self.parent
        detour = sender.detour if parent is None else parent.detour
        up = self._ways.up(self._name)
        return SendingStatus(
            sending_paused=sender.paused or (parent.paused if parent else None),
            to="root" if detour or up is None else up.name,
            children=UNSET if parent is None else parent.children(),
        )

    def _threads(self) -> list[RootDecisions | Sender | Parent]:
        return [self.decisions, self.sender, *([] if self.parent is None else [self.parent])]


class AgentNetwork:
    """The links of an agent's jobs, with the server and the way up that they share."""

    def __init__(
        self, options: AgentOptions, say: Say, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._options, self._say, self._clock = options, say, clock
        self._links: dict[str, JobLink] = {}
        self._stopping = False
        root = ServerWire(options.root, options.token, name="the root", ca=options.ca)
        self._serving: ParentServer | None = None
        if options.serve is not None:
            pair = (options.tls_cert, options.tls_key)
            certificate = None if pair[0] is None or pair[1] is None else (pair[0], pair[1])
            self._serving = ParentServer(options.serve, options.token, self._answer, certificate)
        self.membership: Membership | None = None
        self.ways: Ways
        if options.laid:
            up = None
            if options.parent is not None:
                up = self._connected(options.parent[1], f"parent {options.parent[0]}")
            self.ways = LaidWays(root, up, merges=options.serve is not None)
        else:
            self.ways = self.membership = Membership(
                self._member(root), root, self._connected, say, clock
            )

    @property
    def address(self) -> tuple[str, int] | None:
        """The host and port at which it listens for children; None if it does not."""
        return None if self._serving is None else self._serving.address

    def _connected(self, url: str, name: str) -> ServerWire:
        options = self._options
        return ServerWire(url, options.token, timeout=ANSWER_WITHIN, name=name, ca=options.ca)

    def _member(self, root: ServerWire) -> TreeMember:
        options, serving = self._options, self._serving
        url = ""
        if serving is not None:
            url = options.advertise or advertised(serving.address, serving.secure, root.url)
        return TreeMember(
            options.node,
            url,
            options.most_children if url else 0,
            version=options.version,
            began=wall_clock(),
        )

    def link(self, placed: PlacedJob, outbox: Outbox) -> JobLink:
        """Returns the link of a job. The caller starts it once the job can run."""
        options = self._options

        def parent(decisions: RootDecisions) -> Parent:
            return Parent(
                placed,
                options.node,
                ways=self.ways,
                decisions=decisions,
                children=lambda: self._children(placed.name),
                depth=self._depth,
                most_bytes=options.memory // 2,
                say=self._say,
                clock=self._clock,
            )

        serves = None if self._serving is None else parent
        link = JobLink(
            placed,
            options.node,
            outbox,
            self.ways,
            serves,
            self._say,
            self._clock,
            1 if self.membership is None else DEEPEST,
            lambda: self._unlinked(placed.name),
        )
        self._links[placed.name] = link
        self._tell_jobs()
        return link

    def host(self, host: JobHost) -> None:
        """Run the jobs that the root wants, and no others. Must be called before `start`."""
        if self.membership is None:
            raise CommandError(
                "the root can give an agent its jobs only if it places the agent in the tree: "
                "leave --parent and --children out, or name the application's file"
            )
        self.membership.host(host)

    def start(self) -> None:
        if self._serving is not None:
            self._serving.start()
        if self.membership is not None:
            self.membership.start()

    def check(self) -> None:
        """Raise the error that has ended the thread that all jobs share, if one has."""
        if self.membership is not None:
            self.membership.check()

    def stop(self, seconds: float = 1.0) -> None:
        """Refuse further messages, send on those that are held if there is time, and end."""
        self._stopping = True
        if self._serving is not None:
            self._serving.stop()
        for link in list(self._links.values()):
            link.stop(seconds)
        if self.membership is not None:
            self.membership.stop(seconds)

    def _unlinked(self, job: str) -> None:
        self._links.pop(job, None)
        self._tell_jobs()

    def _tell_jobs(self) -> None:
        """Make the next hello report which jobs run here."""
        if self.membership is not None and not self.membership.hosts:
            self.membership.runs(*(JobTicket(name, "") for name in self._links))

    def _children(self, job: str) -> Collection[str]:
        if self.membership is None:
            return self._options.children
        return self.membership.children(job)

    def _depth(self) -> int:
        if self.membership is None:
            return 0 if self._options.parent is None else 1
        return self.membership.depth()

    def _answer(self, asked: ChildRequest) -> Answer:
        """Answers a child's request as the root would."""
        if self._stopping:
            return refusal_of(503, f"node {self._options.node!r} is about to end", 1.0)
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
            case "POST", ["agents", node] if self.membership is not None:
                return self.membership.greeted(node, asked.body)
        jobs = ", ".join(sorted(self._links)) or "none"
        error = (
            f"this is the agent of node {self._options.node!r}, a parent for the jobs {jobs}: it "
            f"takes /streams/JOB.panes and /jobs/JOB/news; got {asked.path[:200]!r}"
        )
        return refusal_of(404, error)


def _news(link: JobLink, asked: ChildRequest) -> Answer:
    try:
        if asked.method == "POST":
            question = _question.decode(asked.body)
        else:
            fields = parse_qs(asked.query, strict_parsing=bool(asked.query))
            after = fields.get("after")
            question = NewsQuestion(
                fields.get("node", []),
                fields.get("life", [""])[0],
                None if after is None else int(after[0]),
                float(fields.get("wait", ["0"])[0]),
            )
    except (ValueError, msgspec.DecodeError) as error:
        return refusal_of(400, f"this is not a valid question for news: {error}")
    return answer_of(200, link.decisions.answer(question))
