"""The tables of docs/papers/feeding-frenzy-evaluation.md, as lines of Markdown. Pure."""

from __future__ import annotations

from collections.abc import Callable

from bench.experiment_pages import Record, of, shared
from bench.experiments import Row
from bench.feeds import paper
from bench.feeds.judging import HYBRID, gains
from bench.markdown import head
from bench.markdown import row as a_row

POLICIES = ("push all", "push none", HYBRID)


def ratios(found: Record) -> list[str]:
    """Figure 4."""
    rows = of(found, "fig4")
    lines = by_policy(rows, "ratio", "queries : events", lambda at: f"{at:g} : 1")
    return [*lines, "", *_costs(found)]


def full(found: Record) -> list[str]:
    """The table of a point at full size."""
    rows = of(found, "full")
    return by_policy(rows, "ratio", "queries : events", lambda at: f"{at:g} : 1")


def diverse(found: Record) -> list[str]:
    """Figure 4, read with per-producer coherency."""
    rows = of(found, "diverse")
    return by_policy(rows, "ratio", "queries : events", lambda at: f"{at:g} : 1")


def deciding(found: Record) -> list[str]:
    """Each pair by itself, or all of a consumer together."""
    rows = of(found, "deciding")
    best = min(row["cpu_us"] for row in rows if not row["threshold"])
    lines = head("decided", ["threshold", "pushes a post", "pulls a read", "cost, µs", "gain"])
    for row in rows:
        cells = [f"{row['threshold']:.2f}" if row["threshold"] else ""]
        cells += [f"{row['pushes']:.2f}", f"{row['pulls']:.2f}", f"{row['cpu_us']:,.0f}"]
        gain = f"{1 - row['cpu_us'] / best:.1%}" if row["threshold"] else ""
        lines.append(a_row([row["decided"], *cells, gain]))
    return lines


def skews(found: Record) -> list[str]:
    """Figure 5."""
    rows = of(found, "fig5")
    said = {row["factor"]: f"{row['events']:.2f} / {row['queries']:.2f}" for row in rows}
    lines = by_policy(rows, "factor", "Zipf of posts / looks", lambda at: said[at])
    share = f"{paper.GAIN:.0%} with moderate skew, {paper.GAIN_SKEWED:.0%} with more"
    lines += ["", f"The paper's hybrid cost {share} less than the better of the others."]
    return lines


def thresholds(found: Record) -> list[str]:
    """Figure 6."""
    names = ["of H/L", "pushes a post", "pulls a read", "read, mean, ms", "p95, ms"]
    lines = head("threshold", [*names, "cost, µs", "model, µs"])
    for row in of(found, "fig6"):
        cells = [f"{row['factor']:g}", f"{row['pushes']:.2f}", f"{row['pulls']:.2f}"]
        cells += [f"{row['mean_ms']:.3f}", f"{row['p95_ms']:.3f}"]
        cells += [f"{row['cpu_us']:,.0f}", f"{row['model_us']:,.0f}"]
        lines.append(a_row([f"{row['threshold']:.2f}", *cells]))
    over = found["figures"].get("fig6_over_cheapest")
    if over is not None:
        lines += ["", f"At H/L the cost is {over:.1%} above that of the cheapest setting."]
    return lines


def pushed(found: Record) -> list[str]:
    """Figure 7."""
    names = ["pairs on push", "consumers: half", "all", "queries: half", "all"]
    lines = head("threshold", names)
    for row in of(found, "fig7"):
        columns = ("pairs", "half", "whole", "queries_half", "queries_whole")
        lines.append(a_row([f"{row['threshold']:.2f}", *(f"{row[c]:.0%}" for c in columns)]))
    return lines


def strategies(found: Record) -> list[str]:
    """Figure 8."""
    names = ["pulls a read", "read, mean, ms", "p95, ms", "cost, µs", "model, µs"]
    lines = head("what is moved", names)
    for row in of(found, "fig8"):
        cells = [f"{row['pulls']:.2f}", f"{row['mean_ms']:.3f}", f"{row['p95_ms']:.3f}"]
        cells += [f"{row['cpu_us']:,.0f}", f"{row['model_us']:,.0f}"]
        lines.append(a_row([row["what"], *cells]))
    return lines


def fan_outs(found: Record) -> list[str]:
    """Figure 9."""
    lines = head("followers of a producer", ["pushes a post", "pulls a read", "cost, µs"])
    for row in of(found, "fig9"):
        cells = [f"{row['pushes']:.2f}", f"{row['pulls']:.2f}", f"{row['cpu_us']:,.0f}"]
        lines.append(a_row([row["fan_out"], *cells]))
    return lines


def flash(found: Record) -> list[str]:
    """Figure 10."""
    *points, row = of(found, "fig10")
    back = f"back within 10% after {row['back_s']:.0f} s"
    if row["back_s"] > points[-1]["at"]:
        back = f"not back within 10% in {row['back_s']:.0f} s"
    settled = "" if row["settled"] is None else f"{row['settled'] - 1:+.0%}"
    return [
        f"Before the flash {row['before_ms']:.0f} ms of CPU for a batch, at most "
        f"{row['peak_ms']:.0f} ms in it; {back}"
        + (f", and {settled} in the median from 60 s on" if settled else "")
        + f". {row['flipped']:,} pairs changed side, none more than {row['flips']} "
        f"{'time' if row['flips'] == 1 else 'times'}.",
    ]


def followed(found: Record) -> list[str]:
    """A producer that many follow."""
    names = ["pushes", "batches", "longest batch, s", "a push, µs", "memory, MiB", "reads", "wrong"]
    lines = head("followers", names)
    for row in of(found, "followers"):
        cells = [f"{row['pushes']:,}", f"{row['batches']:,}", f"{row['longest_s']:.2f}"]
        cells += [f"{row['push_us']:.0f}", f"{row['memory_mib']:.0f}", f"{row['reads']:,}"]
        lines.append(a_row([f"{row['followers']:,}", *cells, row["violations"]]))
    return lines


def live(found: Record) -> list[str]:
    """Reads over HTTP."""
    names = ["reads", "p50, ms", "p95, ms", "p99, ms", "posts/s taken", "server's cores"]
    lines = head("", [*names, "items a page", "not 200"])
    for row in of(found, "reads"):
        cells = [f"{row['reads']:,}", *(f"{row[n]:.1f}" for n in ("p50_ms", "p95_ms", "p99_ms"))]
        cells += [f"{row['posts_per_s']:,.0f}", f"{row['cores_server']:.2f}"]
        lines.append(a_row([row["what"], *cells, f"{row['items']:.1f}", row["not_200"]]))
    return lines


def correct(found: Record) -> list[str]:
    """Reads against brute force."""
    names = ["reads", "violations", "batches", "kills", "tasks tried again", "sides told"]
    lines = head("", names)
    for row in of(found, "reads-correct"):
        columns = ("reads", "violations", "batches", "kills", "retries", "flips")
        lines.append(a_row([row["what"], *(f"{row[name]:,}" for name in columns)]))
    return lines


def by_policy(rows: list[Row], point: str, first: str, said: Callable[[float], str]) -> list[str]:
    """A table of points by policy: the whole cost, what of it is the policy's, and the model's."""
    names = [f"{policy}, µs" for policy in POLICIES]
    names += ["H, µs", "L, µs", "H/L", "gain", "by the policies alone", "by the model"]
    lines = head(first, names)
    whole, policy, model = (
        gains(rows, point, column) for column in ("cpu_us", "policy_us", "model_us")
    )
    for at in sorted({row[point] for row in rows}):
        by = {row["policy"]: row for row in rows if row[point] == at}
        cells = [f"{by[name]['cpu_us']:,.0f}" if name in by else "" for name in POLICIES]
        cells += _ratio(by[HYBRID]) if HYBRID in by else ["", "", ""]
        cells += [f"{gain[at]:.1%}" if at in gain else "" for gain in (whole, policy, model)]
        lines.append(a_row([said(at), *cells]))
    return lines


def _ratio(row: Row) -> list[str]:
    """H, L and the threshold, which is the one over the other."""
    return [
        f"{row['threshold'] * row['low']:.0f}",
        f"{row['low']:.1f}",
        f"{row['threshold']:.2f}",
    ]


def _costs(found: Record) -> list[str]:
    known = shared(found, "fig4", "costs")
    if not known:
        return []
    high, low = known["high"], known["low"]
    return [
        f"At the start, at 16 : 1, a push cost H = {high:.1f} µs and a pull L = {low:.1f} µs, so "
        f"that the threshold was {high / low:.2f} (the paper's: {paper.THRESHOLD:g}). "
        "What no policy changes: "
        f"{known['post']:.0f} µs for a post that is pushed to nobody, "
        f"{known['query']:.0f} µs for a read that pulls nothing. Not in the tables: "
        f"{known['view']:.0f} µs for a look that is told to the application, which the server does "
        "at most every five seconds for a consumer."
    ]
