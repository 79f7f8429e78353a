"""For schemathesis (scripts/schema-check): what is true between two requests, or two fields.

A schema cannot say it, and the server refuses what breaks it, as it must:

- An idempotency key is used for one body. Generated keys are short, and come again.
- The time of a record of feeds is not ahead of the clock.
- An aggregated producer is not a source of itself.
"""

import json
import re
import time
import uuid

import schemathesis

KEY = "Idempotency-Key"


@schemathesis.deserializer("application/x-ndjson")
def first_line(context, response):
    """The document describes a line, so one is compared with it."""
    return json.loads(response.content.partition(b"\n")[0])


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Write tuples of one type as lists of that length, which means the same.

    schemathesis 4.32 spoils `prefixItems` below `additionalProperties`, and then refuses them.
    """
    nodes = [raw_schema]
    for node in nodes:
        if isinstance(node, dict):
            parts = node.get("prefixItems")
            if parts and all(part == parts[0] for part in parts) and node.get("items") is False:
                node["items"] = node.pop("prefixItems")[0]
            nodes += node.values()
        elif isinstance(node, list):
            nodes += node


@schemathesis.hook
def before_call(context, case, kwargs):
    """Make what is valid by itself valid with the rest; leave what is not valid as it is."""
    record = case.body
    if isinstance(record, dict) and "kind" in record:
        now = time.time_ns() // 1_000
        at, sources = record.get("at"), record.get("sources")
        if type(at) in (int, float) and now < at < 10**17:
            record["at"] = at % now or 1
        if isinstance(sources, list) and record.get("producer") in sources:
            record["sources"] = [source for source in sources if source != record["producer"]]
    key = (case.headers or {}).get(KEY)
    if isinstance(key, str) and re.fullmatch(r"[!-~]([ -~]{0,158}[!-~])?", key):
        case.headers[KEY] = f"{key}-{uuid.uuid4().hex}"
