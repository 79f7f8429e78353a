"""The parts of docs/papers/s4-evaluation.md."""

from __future__ import annotations

from bench.experiment_pages import Page, Part, Picture
from bench.s4 import plots, tables

PAGE = Page(
    "s4",
    {
        "runs": Part("files", tables.runs),
        "scalability": Part(
            "files",
            tables.scalability,
            {
                "processed": Picture("Events counted by workers and keys", plots.processed),
                "lost": Picture("Events lost, in percent", plots.lost),
            },
        ),
        "throughput": Part(
            "files",
            tables.throughput,
            {"throughput": Picture("Events a second by workers and keys", plots.throughput)},
        ),
        "rates": Part("http", tables.rates),
        "resources": Part(
            "http",
            tables.resources,
            {"resources": Picture("CPU of each worker at the stated rates", plots.resources)},
        ),
        "spread": Part("files", tables.spread),
        "faults": Part(
            "fault",
            tables.faults,
            {"faults": Picture("Events counted under killed workers, by worker", plots.faults)},
        ),
        "returned": Part(
            "returned",
            tables.returned,
            {
                "returned": Picture(
                    "Words a second while a worker dies and comes back", plots.returned
                )
            },
        ),
    },
)
