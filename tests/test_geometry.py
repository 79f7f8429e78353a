"""Drawings of workflows as numbers: what the page and the SVG image are made from."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import millstream as ms
from millstream import graph
from millstream.config import load
from millstream.model.workflow import Workflow

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = ["hot_topics.py", "http_counters.py", "reputation.py", "retail.py", "top_urls.py"]


def knotted() -> Workflow:
    """Edges over columns, and a last function with feedback to all before it; no outputs."""
    app = ms.App("knotted")
    app.source("events", key="key")

    @app.map("events", "c", "d", publishes=["a"])
    def first(event):
        yield ms.emit("a")

    @app.update("a", "d", publishes=["b", "c"])
    def second(event, slate):
        yield ms.emit("b")

    @app.update("a", "b", "e", publishes=["d", "e", "a_stream_with_a_long_name"])
    def third(event, slate):
        yield ms.emit("d")

    @app.map("a_stream_with_a_long_name", publishes=["c", "d", "e"])
    def fourth(event):
        yield ms.emit("c")

    return app.workflow()


@pytest.fixture(params=[*NAMES, "knotted"])
def workflow(request: pytest.FixtureRequest) -> Workflow:
    if request.param == "knotted":
        return knotted()
    return load(str(EXAMPLES / request.param)).app.workflow()


def points(path: str) -> list[tuple[float, float]]:
    """The points that an SVG path's commands lead to, control points included."""
    x = y = 0.0
    found = []
    for command, rest in re.findall(r"([a-zA-Z])([^a-zA-Z]*)", path):
        numbers = [float(number) for number in re.findall(r"-?[0-9.]+", rest)]
        if command in "Hh":
            pairs = [(numbers[0] + (x if command == "h" else 0), y)]
        elif command in "Vv":
            pairs = [(x, numbers[0] + (y if command == "v" else 0))]
        else:
            pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
            if command.islower():
                pairs = [(x + right, y + down) for right, down in pairs]
        found += pairs
        x, y = found[-1]
    return found


def test_edges_touch_the_nodes_they_join(workflow: Workflow) -> None:
    """An edge begins on its emitter's right side, and its tip is on its reader's left side."""
    drawing = graph.geometry(workflow)
    nodes = {node["id"]: node for node in drawing["nodes"]}
    for edge in drawing["edges"]:
        emitter, reader = nodes[edge["from"]], nodes[edge["to"]]
        line, tip = points(edge["path"]), points(edge["tip"])
        (x, y), (to, down) = line[0], tip[0]
        assert x == pytest.approx(emitter["x"] + emitter["width"], abs=0.1)
        assert emitter["y"] < y < emitter["y"] + emitter["height"]
        assert to == pytest.approx(reader["x"], abs=0.1)
        assert reader["y"] < down < reader["y"] + reader["height"]
        assert line[-1] == pytest.approx((to - 8, down), abs=0.1), "the tip is at the line's end"


def test_nothing_lies_outside(workflow: Workflow) -> None:
    """Boxes, lines, arrow tips and the names of streams are inside width and height."""
    drawing = graph.geometry(workflow)
    width, height = drawing["width"], drawing["height"]
    places = [place for edge in drawing["edges"] for place in points(edge["path"])]
    places += [place for edge in drawing["edges"] for place in points(edge["tip"])]
    for node in drawing["nodes"]:
        places.append((node["x"], node["y"]))
        places.append((node["x"] + node["width"], node["y"] + node["height"]))
        assert max(map(len, node["lines"])) * 7 < node["width"]
    for label in drawing["labels"]:
        places += [
            (label["x"], label["y"] - 10),
            (label["x"] + 7 * len(label["stream"]), label["y"]),
        ]
    assert all(0 < x < width and 0 < y < height for x, y in places)


def test_every_node_edge_and_label_is_there(workflow: Workflow) -> None:
    """A node for each source, function and output; an edge for each reader of each stream."""
    drawing = graph.geometry(workflow)
    assert [(node["role"], node["name"]) for node in drawing["nodes"]] == [
        *(("source", source.name) for source in workflow.sources),
        *(("function", function.name) for function in workflow.functions),
        *(("output", output) for output in workflow.outputs),
    ]
    emitters = [(f"s:{source.name}", source.name) for source in workflow.sources]
    published = [(f"f:{f.name}", stream) for f in workflow.functions for stream in f.publishes]
    expected = {
        (emitter, stream, f"f:{reader.name}")
        for emitter, stream in emitters + published
        for reader in workflow.subscribers(stream)
    } | {
        (emitter, stream, f"o:{stream}")
        for emitter, stream in emitters + published
        if stream in workflow.outputs
    }
    drawn = [(edge["from"], edge["stream"], edge["to"]) for edge in drawing["edges"]]
    assert len(drawn) == len(expected)
    assert set(drawn) == expected
    back = {edge for edge, one in zip(drawn, drawing["edges"], strict=True) if one["feedback"]}
    assert back == {(f"f:{a}", stream, f"f:{b}") for a, stream, b in workflow.feedback}
    assert [(label["from"], label["stream"]) for label in drawing["labels"]] == published


def test_the_drawing_is_json_as_it_stands(workflow: Workflow) -> None:
    """The drawing is unchanged after encoding to JSON and decoding, so it can be stored and sent to
    a page."""
    drawing = graph.geometry(workflow)
    assert json.loads(json.dumps(drawing)) == drawing


def test_the_image_has_the_same_lines(workflow: Workflow) -> None:
    """The SVG image draws these very paths, in this size."""
    drawing = graph.geometry(workflow)
    image = ET.fromstring(graph.svg(workflow))
    paths = [path.get("d") for path in image.iter("{http://www.w3.org/2000/svg}path")]
    assert paths == [edge[part] for edge in drawing["edges"] for part in ("path", "tip")]
    assert float(str(image.get("width"))) == pytest.approx(drawing["width"], abs=0.5)
    assert float(str(image.get("height"))) == pytest.approx(drawing["height"], abs=0.5)


def with_parts() -> Workflow:
    """A job over a stream of an update that also reads what the job publishes: folded, the two
    boxes make a cycle."""
    app = ms.App("parts")
    app.source("clicks", key="user")

    @app.update("clicks", "rates", publishes=["seen"])
    def note(event, slate):
        yield ms.emit("seen")

    job = ms.windows.Job(map=lambda record: [("all", 1)], combine=int.__add__, range="1m")
    app.add(job, name="rates", nodes={"web1": "seen"})
    return app.workflow()


def test_a_part_is_one_node() -> None:
    """A folded job is one node, with the streams that leave it; its functions are not drawn; an
    edge that closes a cycle of nodes runs back."""
    workflow = with_parts()
    drawing = graph.geometry(workflow, folded=["rates"])
    nodes = {node["id"]: node for node in drawing["nodes"]}
    assert nodes["p:rates"]["lines"][:2] == ["rates", "job, 1 node"]
    assert not [name for name in nodes if name.startswith("f:rates.")]
    edges = {(edge["from"], edge["stream"], edge["to"]) for edge in drawing["edges"]}
    assert {("s:clicks", "clicks", "f:note"), ("f:note", "seen", "p:rates")} <= edges
    assert ("p:rates", "rates", "f:note") in edges
    assert [edge["stream"] for edge in drawing["edges"] if edge["feedback"]] == ["rates"]


def test_an_output_has_its_address() -> None:
    workflow = load(str(EXAMPLES / "retail.py")).app.workflow()
    output = workflow.outputs[0]
    drawing = graph.geometry(workflow, {output: "sqlite:counts.db"})
    [node] = [node for node in drawing["nodes"] if node["id"] == f"o:{output}"]
    assert node["lines"] == [output, "output", "sqlite:counts.db"]
