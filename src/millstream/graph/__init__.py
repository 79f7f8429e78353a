"""Draws a workflow: as a text tree for the terminal, as Mermaid, as SVG.

All three show the same: sources, functions in the order of their data, the streams between them,
separate feedback edges, outputs.

    words         describes a source, a function or a stream in a few words
    tree          `text`
    mermaid       `mermaid`
    boxes         the boxes of an image, and the edges between them
    layout        places the boxes of an image
    folded_parts  draws a part of the application as one box
    geometry      `geometry`: the whole image in numbers, for the page
    svg           `svg`
"""

from millstream.graph.geometry import geometry
from millstream.graph.mermaid import mermaid
from millstream.graph.svg import svg
from millstream.graph.tree import text

__all__ = ["geometry", "mermaid", "svg", "text"]
