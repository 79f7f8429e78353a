"""A workflow drawn: as a tree of text for the terminal, as Mermaid, as SVG.

All three show the same: sources, functions in the order of their data, streams between them,
feedback edges apart, outputs.

words     a source, a function or a stream in a few words
tree      `text`
mermaid   `mermaid`
layout    where the boxes go in an image
geometry  `geometry`: the whole image in numbers, for the page
svg       `svg`
"""

from millstream.graph.geometry import geometry
from millstream.graph.mermaid import mermaid
from millstream.graph.svg import svg
from millstream.graph.tree import text

__all__ = ["geometry", "mermaid", "svg", "text"]
