"""The OpenAPI document and the application say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from served import asked
from shop_store import Shop

from millstream.server.app import all_routes
from millstream.server.open_store import OpenStore
from millstream.server.openapi.openapi_document import document
from millstream.server.openapi.operations import FRESH
from millstream.server.options import ServerOptions
from millstream.server.service import Service

KINDS: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}
COMPONENTS = document()["components"]["schemas"]


def misfits(value: Any, schema: dict[str, Any], at: str = "answer") -> list[str]:
    """Where a value is not as a schema says; fields that it does not name are misfits too."""
    if "$ref" in schema:
        schema = COMPONENTS[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        tried = [misfits(value, one, at) for one in schema["anyOf"]]
        return [] if [] in tried else tried[0]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at}: {value!r} is not one of {schema['enum']}"]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, KINDS[kind]) for kind in kinds):
        return [f"{at}: {value!r} is not {kinds}"]
    found = []
    if isinstance(value, dict) and "properties" in schema:
        fields = schema["properties"]
        found += [f"{at}.{name} is missing" for name in schema["required"] if name not in value]
        found += [f"{at}.{name} is not in the document" for name in value if name not in fields]
        for name in fields.keys() & value.keys():
            found += misfits(value[name], fields[name], f"{at}.{name}")
    elif isinstance(value, dict) and "additionalProperties" in schema:
        for name, one in value.items():
            found += misfits(one, schema["additionalProperties"], f"{at}.{name}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            parts = schema.get("prefixItems", [])
            rest = schema.get("items") or {}
            part = parts[number] if number < len(parts) else rest
            found += misfits(one, part, f"{at}[{number}]")
    return found


def test_a_job_may_have_an_empty_log() -> None:
    """An empty log has ended at no time, so `windows.job_view` gives null."""
    assert misfits({"web1": None, "web2": 3}, COMPONENTS["JobAnswer"]["properties"]["ended"]) == []


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[httpx.Client]:
    shop = Shop(tmp_path_factory.mktemp("openapi") / "store")
    shop.count({"Walmart": {"count": 3}})
    shop.append("visits", {"user": "a", "time": 1})
    shop.fail("Walmart", "ValueError")
    with asked(shop.path) as client:
        yield client


def test_every_route_is_in_the_document(tmp_path):
    """And every path of the document is a route: the same methods, the same places."""
    shop = Shop(tmp_path / "store")
    store = OpenStore(shop.path)
    routes = all_routes(Service(ServerOptions(shop.path), store, ""))
    paths = document()["paths"]
    written = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert {(route.method, route.path) for route in routes} == written
    assert len(routes) == len(written)
    store.close()


@pytest.mark.parametrize(
    ("path", "asked_for"),
    [
        ("/slates", "/slates"),
        ("/slates/{update}/{key}", "/slates/count/Walmart"),
        ("/slates/{update}", "/slates/count"),
        ("/slates/{update}", "/slates/count?key=Walmart"),
        ("/slates/{update}/dump", "/slates/count/dump"),
        ("/streams", "/streams"),
        ("/streams/{name}/records", "/streams/deadletters/records?from=start"),
        ("/status", "/status"),
        ("/history", "/history"),
        ("/graph", "/graph"),
        ("/metrics", "/metrics"),
        ("/healthz", "/healthz"),
        ("/openapi.json", "/openapi.json"),
        ("/", "/"),
    ],
)
def test_answers_are_as_written(client, path, asked_for):
    """A real answer has the type and exactly the fields that the document says."""
    found = client.get(asked_for)
    assert found.status_code == 200
    written = document()["paths"][path]["get"]["responses"]["200"]
    (media,) = written["content"]
    assert found.headers["content-type"].startswith(media)
    if media in ("application/json", "application/x-ndjson"):
        lines = [found.text] if media == "application/json" else found.text.splitlines()
        for line in lines:
            assert misfits(json.loads(line), written["content"][media]["schema"]) == []
    for name in written.get("headers", {}).keys() - {FRESH.name}:  # a mirror alone has these
        assert name in found.headers


def test_what_is_sent_is_as_written(client):
    """The answer to events that were sent, and to those that were refused."""
    written = document()["paths"]["/streams/{name}"]["post"]
    schema = written["responses"]["200"]["content"]["application/json"]["schema"]
    body = '{"user": "a", "time": "2026-01-01T00:00:00Z"}\nnot JSON\n'
    assert "application/x-ndjson" in written["requestBody"]["content"]
    found = client.post(
        "/streams/visits", content=body, headers={"Content-Type": "application/x-ndjson"}
    )
    assert found.status_code == 200, found.text
    assert found.json()["refused_count"] == 1
    assert misfits(found.json(), schema) == []
    refused = client.post("/streams/nothing", json={})
    assert str(refused.status_code) in written["responses"]
    assert misfits(refused.json(), COMPONENTS["ErrorAnswer"]) == []


def test_the_document_that_is_served(client):
    """The served document is the same, and has the package's version."""
    assert client.get("/openapi.json").json() == json.loads(json.dumps(document()))
    assert document()["openapi"].startswith("3.1")


@pytest.mark.parametrize("path", sorted(document()["paths"]))
def test_each_place_of_a_path_is_a_parameter(path):
    """As the format wants it."""
    for operation in document()["paths"][path].values():
        places = {word[1:-1] for word in path.split("/") if word.startswith("{")}
        named = {one["name"] for one in operation.get("parameters", []) if one["in"] == "path"}
        assert named == places


def test_parameters_that_must_come_are_said_to(client):
    """If a request without a parameter is refused, the document requires the parameter."""
    (key,) = (
        one
        for one in document()["paths"]["/slates/{update}/watch"]["get"]["parameters"]
        if one["name"] == "key"
    )
    assert key["required"]
    assert client.get("/slates/count/watch").status_code == 400


@pytest.mark.parametrize("path", sorted(document()["paths"]))
def test_allow_is_as_written(client, path):
    """`Allow` has the methods of the document, and HEAD where there is GET."""
    concrete = path.replace("{update}", "count").replace("{", "").replace("}", "")
    allowed = client.request("OPTIONS", concrete).headers["allow"].split(", ")
    written = {method.upper() for method in document()["paths"][path]}
    assert set(allowed) == written | ({"HEAD"} if "GET" in written else set())
