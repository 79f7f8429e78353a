"""The parts of docs/papers/feeding-frenzy-evaluation.md."""

from __future__ import annotations

from bench.experiment_pages import Page, Part, Picture
from bench.feeds import plots, tables

PAGE = Page(
    "feeds",
    {
        "ratios": Part(
            "fig4",
            tables.ratios,
            {"ratios": Picture("Cost by queries for each event", plots.ratios)},
        ),
        "full": Part("full", tables.full),
        "diverse": Part("diverse", tables.diverse),
        "deciding": Part("deciding", tables.deciding),
        "skews": Part(
            "fig5", tables.skews, {"skews": Picture("Cost by how skewed rates are", plots.skews)}
        ),
        "thresholds": Part(
            "fig6",
            tables.thresholds,
            {"thresholds": Picture("Latency and cost by the threshold", plots.thresholds)},
        ),
        "pushed": Part(
            "fig7",
            tables.pushed,
            {"pushed": Picture("Whose events are pushed, by the threshold", plots.pushed)},
        ),
        "strategies": Part(
            "fig8",
            tables.strategies,
            {"strategies": Picture("Cost and latency of both strategies", plots.strategies)},
        ),
        "fan_outs": Part(
            "fig9", tables.fan_outs, {"fan-outs": Picture("Cost by fan-out", plots.fan_outs)}
        ),
        "flash": Part(
            "fig10", tables.flash, {"flash": Picture("Cost before and in a flash", plots.flash)}
        ),
        "followed": Part("followers", tables.followed),
        "live": Part("reads", tables.live),
        "correct": Part("reads-correct", tables.correct),
    },
)
