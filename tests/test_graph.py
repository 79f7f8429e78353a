"""Workflows drawn as text, Mermaid and SVG."""

import re
import xml.etree.ElementTree as ET

import pytest

import millstream as ms
from millstream import graph
from millstream.graph.layout import lay_out
from millstream.graph.words import stream_remark
from millstream.model.function import Map
from millstream.model.source import Source
from millstream.model.stream import Stream
from millstream.model.workflow import Workflow


@pytest.fixture
def workflow() -> Workflow:
    """Two sources, a diamond, an edge over columns, feedback to a map and to itself, outputs."""
    app = ms.App("retail")
    app.source("checkins", key="user", ts="time")
    app.source("refunds", key=len)
    app.stream("again", delay="5s", after="known")
    app.output("hot")

    @app.map("checkins", "again", publishes=["known", "again"])
    def recognise(event):
        yield ms.emit("known")

    @app.update("known", "refunds", slate=ms.Table, ttl="90d", publishes=["totals", "again"])
    def count(event, slate):
        yield ms.timer(after="1h")

    @count.on_timer
    def later(timer, slate):
        yield ms.emit("totals")

    @app.update("totals", "known", publishes=["hot", "totals"])
    def top(event, slate):
        yield ms.emit("hot")

    return app.workflow()


def test_text_is_a_tree_of_streams_and_functions(workflow):
    """Each function appears once in full, feedback and repeats are said so."""
    drawn = re.sub(r" \(.*?\)$", "", graph.text(workflow), flags=re.M)
    assert drawn == (
        "retail: arrival order\n"
        "\n"
        "checkins                          source, key user, ts time\n"
        "└─ [recognise]                    map\n"
        "   ├─ known\n"
        "   │  ├─ [count]                  update, slate Table, ttl 90d, timers\n"
        "   │  │  ├─ totals\n"
        "   │  │  │  └─ [top]              update, slate dict\n"
        "   │  │  │     ├─ hot             output\n"
        "   │  │  │     └─ totals\n"
        "   │  │  │        └─ top          feedback: joins the next batch\n"
        "   │  │  └─ again                 delay 5s, after known\n"
        "   │  │     └─ recognise          feedback: joins the next batch\n"
        "   │  └─ top                      as above\n"
        "   └─ again                       delay 5s, after known\n"
        "      └─ recognise                feedback: joins the next batch\n"
        "refunds                           source, key len()\n"
        "└─ count                          as above\n"
    )


def test_text_shows_what_no_source_reaches():
    """A cycle that nothing feeds is drawn too."""
    lonely = Map("lonely", print, ("ring",), ("ring",))
    drawn = graph.text(Workflow("app", (Source("in"),), (lonely,)))
    assert "[lonely]" in drawn


def test_mermaid_has_every_node_and_edge(workflow):
    """Feedback edges are dotted, the others plain, outputs are nodes of their own."""
    lines = [line.strip() for line in graph.mermaid(workflow).splitlines()]
    assert lines[0] == "flowchart LR"
    assert {
        's0(["checkins"])', 'f0["recognise<br/>map"]', 'o0(["hot"])', "s0 --> f0", "s1 --> f1",
        'f0 -- "known" --> f1', 'f0 -- "known" --> f2', 'f0 -. "again" .-> f0',
        'f1 -- "totals" --> f2', 'f1 -. "again" .-> f0', 'f2 -. "totals" .-> f2', "f2 --> o0",
    } < set(lines)  # fmt: skip
    assert len(lines) == 1 + 2 + 3 + 1 + 9


def hostile() -> Workflow:
    """A workflow whose names (not made by App, which would refuse them) are markup."""
    name = "<script>\"&'"
    return Workflow(
        name, (Source(name),), (Map(name + "f", print, (name,), (name + "o",)),),
        (Stream(name + "o", output=True),),
    )  # fmt: skip


def test_names_are_escaped():
    """No name can break out of the drawing."""
    assert "<script>" not in graph.svg(hostile())
    texts = [element.text for element in ET.fromstring(graph.svg(hostile())).iter() if element.text]
    assert "<script>\"&'" in texts
    assert "<script>" not in graph.mermaid(hostile())
    assert '"&' not in graph.mermaid(hostile())


def test_svg_shows_every_box_stream_and_feedback_edge(workflow):
    """The image has a box a function, a name a published stream, a dashed line a feedback edge."""
    drawn = ET.fromstring(graph.svg(workflow))
    space = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in drawn.iter(f"{space}text")]
    for name in ("checkins", "refunds", "recognise", "count", "top", "hot", "totals", "again"):
        assert name in texts
    dashed = [p for p in drawn.iter(f"{space}path") if p.get("class") == "edge back"]
    assert len(dashed) == len(workflow.feedback) == 3
    assert "prefers-color-scheme: dark" in graph.svg(workflow)


def test_layout_keeps_boxes_apart_and_in_order(workflow):
    """Sources are left, outputs right, every edge goes right, and no two boxes overlap."""
    layout = lay_out(workflow)
    boxes = layout.boxes
    assert boxes["s:checkins"].column == 0
    assert boxes["o:hot"].column == max(box.column for box in boxes.values())
    for route in layout.routes:
        xs = [boxes[name].x for name in route.path]
        assert xs == sorted(set(xs))
        columns = [boxes[name].column for name in route.path]
        assert columns == list(range(columns[0], columns[-1] + 1))
    placed = list(boxes.values())
    for one in placed:
        for other in placed:
            if one is not other and one.column == other.column:
                assert one.y + one.height <= other.y or other.y + other.height <= one.y


def test_an_action_is_called_one() -> None:
    """The drawing distinguishes actions from outputs that are only published."""
    app = ms.App("alarms")
    app.source("readings", key="sensor")
    app.output("high")
    app.action("alert")

    @app.map("readings", publishes=["high", "alert"])
    def look(event: ms.Event) -> None:
        pass

    remarks = {name: stream_remark(app.checked(), name) for name in ("high", "alert")}
    assert remarks == {"high": "output", "alert": "action"}
