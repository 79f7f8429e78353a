"""Pickles a user's functions and slate classes for Spark's workers.

Only code is pickled here, never data. The user's own modules are pickled by value, so that a worker
needs nothing but Millstream itself. The cache that msgspec keeps in classes is removed first: it
cannot be pickled, and msgspec rebuilds it where it is needed.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from millstream.engine.plan import Plan
from millstream.model.workflow import Workflow

_REMEMBERED = "__msgspec_cache__"


class _Pickler(cloudpickle.CloudPickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and _REMEMBERED in vars(obj):
            delattr(obj, _REMEMBERED)
        return super().reducer_override(obj)


def dumps(value: Any, workflow: Workflow) -> bytes:
    """Pickles a value that holds a workflow."""
    with _by_value(workflow), io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


def loads(data: bytes) -> Any:
    return cloudpickle.loads(data)


@dataclass(frozen=True, slots=True)
class PackedPlan:
    """A pickled plan, identified by its digest: a worker unpacks it once and keeps it."""

    digest: str
    data: bytes = field(compare=False)

    @classmethod
    def of(cls, plan: Plan) -> PackedPlan:
        data = dumps(plan, plan.workflow)
        return cls(sha256(data).hexdigest(), data)

    def unpack(self) -> Plan:
        plan: Plan = loads(self.data)
        return plan


@contextmanager
def _by_value(workflow: Workflow) -> Iterator[None]:
    modules = list(_user_modules(workflow))
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _user_modules(workflow: Workflow) -> Iterator[ModuleType]:
    names = set()
    for function in workflow.functions:
        for part in ("function", "slate", "on_timer", "priority"):
            code = getattr(function, part, None)
            names.add(getattr(code, "__module__", None))
            names.update(getattr(code, "__modules__", ()))  # of an object that calls other code
        for lookup in getattr(function, "lookups", ()):
            names.update(lookup.__modules__)
    for source in workflow.sources:
        names.update(getattr(code, "__module__", None) for code in (source.key, source.ts))
    for name in names:
        module = sys.modules.get(name or "")
        path = getattr(module, "__file__", None)
        if module is not None and path and name != "__main__" and not _installed(name or "", path):
            yield module


def _installed(name: str, path: str) -> bool:
    return name.split(".")[0] == "millstream" or "site-packages" in path or "dist-packages" in path
