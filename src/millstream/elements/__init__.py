"""Processing elements (S4), and the standard ones, which need no code.

`STANDARD` is what `element = "count"` in a TOML file finds. The package imports no Spark, and
nothing of the engine knows it: an element is made of maps, updates, slates and timers.
"""

from __future__ import annotations

from millstream.elements.count import Count
from millstream.model.app import Part

STANDARD: dict[str, type[Part]] = {
    "count": Count,
}
"""The standard elements by the name that a file has for them."""

__all__ = ["STANDARD", "Count"]
