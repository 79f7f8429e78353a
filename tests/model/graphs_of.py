"""Workflows from short descriptions of their graphs."""

from __future__ import annotations

from typing import Any

import millstream as ms
from millstream.model.workflow import Workflow

Graph = list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]
"""(map or update, name, subscriptions, published streams), in order of declaration."""


def an_app(**settings: Any) -> ms.App:
    app = ms.App("shop", **settings)
    app.source("orders", key="user")
    return app


def update(event: Any, slate: Any) -> None: ...


def mapper(event: Any) -> None: ...


def build(graph: Graph) -> Workflow:
    """The workflow of a graph over the source `orders`; warnings are of no interest here."""
    app = an_app()
    for kind, name, subscribes, publishes in graph:
        if kind == "map":
            app.map(*subscribes, publishes=publishes, name=name)(mapper)
        else:
            app.update(*subscribes, publishes=publishes, name=name)(update)
    return app.checked()


def layers(workflow: Workflow) -> list[list[str]]:
    return [[function.name for function in layer] for layer in workflow.layers]
