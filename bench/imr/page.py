"""The parts of docs/papers/imr-evaluation.md."""

from __future__ import annotations

from bench.experiment_pages import Page, Part, Picture
from bench.imr import plots, tables

PAGE = Page(
    "imr",
    {
        "scaling": Part(
            "fig7",
            tables.scaling,
            {"scaling": Picture("Records a second by agents and reducers", plots.scaling)},
        ),
        "shedding": Part(
            "fig8",
            tables.shedding,
            {"shedding": Picture("Fidelity and latency under other load", plots.shedding)},
        ),
        "words": Part(
            "fig9",
            tables.words,
            {"words": Picture("Errors of counts and shares of words", plots.words)},
        ),
        "clicks": Part(
            "fig11",
            tables.clicks,
            {"clicks": Picture("Errors of sessions, and users found", plots.clicks)},
        ),
        "hdfs": Part(
            "fig12",
            tables.hdfs,
            {"hdfs": Picture("Histograms that differ from the whole ones", plots.hdfs)},
        ),
        "failures": Part(
            "fig10",
            tables.failures,
            {"failures": Picture("Goodput with replaced servers", plots.failures)},
        ),
        "beside": Part(
            "fig13",
            tables.beside,
            {"beside": Picture("Fidelity, and the other work, by niceness", plots.beside)},
        ),
        "waiting": Part(
            "waiting",
            tables.waiting,
            {"waiting": Picture("How long a window takes, by what is asked", plots.waiting)},
        ),
        "click_latency": Part(
            "fig11c",
            tables.click_latency,
            {"click-latency": Picture("How long a window of sessions takes", plots.click_latency)},
        ),
        "hdfs_latency": Part(
            "fig12b",
            tables.hdfs_latency,
            {"hdfs-latency": Picture("How long a window of writes takes", plots.hdfs_latency)},
        ),
        "coverage": Part(
            "coverage",
            tables.coverage,
            {"coverage": Picture("Intervals with the truth in them", plots.coverage)},
        ),
        "contract": Part("contract", tables.contract),
        "clocks": Part("clocks", tables.clocks),
        "crowd": Part("crowd", tables.crowd),
        "crossover": Part(
            "crossover",
            tables.crossover,
            {"crossover": Picture("Time to put a window together", plots.crossover)},
        ),
    },
)
