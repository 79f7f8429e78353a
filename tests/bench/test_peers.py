"""The measurement of peers: the processed records with their times, and the comparison of the
answers."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.bench import Bench
from bench.experiments import Evaluation, Experiment
from bench.figures import Outcome
from bench.peers import answers, cases, environments, nexmark, tables
from bench.peers.cases import PLANS, QUICK
from bench.peers.contestants import CONTESTANTS, Run
from bench.peers.counting import PEERS, followed
from bench.peers.environments import FOLDER
from bench.peers.judging import JUDGING, figures
from bench.peers.live import Seen
from bench.peers.loads import LOADS, events_of
from bench.peers.matching import RULES, SELECTIVITY, SPACE, Rules
from bench.peers.progress import Progress, processed
from bench.peers.racing import raced, warm_rate
from bench.results import record, write


def test_records_that_two_processes_had_count_once(tmp_path: Path) -> None:
    """After a rebalance a partition is read again by another process; how far it got is the
    furthest of both. A process that has not begun has nothing."""
    paths = [tmp_path / name for name in ("a", "b", "none")]
    first, second = Progress(paths[0]), Progress(paths[1])
    first.slots[0], first.slots[1] = 10, 5
    second.slots[0], second.slots[2] = 4, 7
    assert processed(paths) == 22


def test_a_run_is_followed_to_its_end(tmp_path: Path) -> None:
    """A run ends with the last record, or once it was measured for long enough."""
    progress = Progress(tmp_path / "a")
    progress.slots[0] = 100
    assert followed([tmp_path / "a"], 100, 20, 60.0)[-1][0] == 100
    progress.slots[0] = 50
    assert followed([tmp_path / "a"], 100, 20, 0.0)[-1][0] == 50


def test_each_peer_has_an_application_and_an_environment() -> None:
    """Pinned, so that the figures can be had again."""
    for peer in PEERS:
        assert (FOLDER / f"{peer.name}_count.py").exists()
        wanted = (FOLDER / f"{peer.name}.txt").read_text().split()
        assert wanted
        assert all("==" in line for line in wanted)


def test_every_contestant_has_an_application_for_each_of_its_works() -> None:
    """And a pinned environment, unless it runs in that of Millstream."""
    folders = {name: name.split("_")[0] for name in (one.name for one in CONTESTANTS)}
    folders["loops"] = "nothing"
    for contestant in CONTESTANTS:
        for work in contestant.works:
            script = f"built_in_{work}" if contestant.name.endswith("built_in") else work
            assert (FOLDER / f"on_{folders[contestant.name]}" / f"{script}.py").exists()
        if contestant.environment:
            wanted = (FOLDER / f"{contestant.environment}.txt").read_text().split()
            assert all("==" in line for line in wanted)


def test_every_load_has_a_plan_and_a_table() -> None:
    """A load that is added must be added everywhere."""
    page = (FOLDER.parents[1] / "docs" / "peers.md").read_text()
    assert [*LOADS, "live"] == [*PLANS] == [*QUICK] == [*JUDGING.of]
    assert all(f"<!-- figures:peers.{name} -->" in page for name in PLANS)


def test_a_rule_matches_its_range() -> None:
    """The index says what looking at every rule would say, and the rules match as often as they
    should."""
    rules = Rules()
    step = SPACE // 100_000
    matches = [len(rules.matching(number)) for number in range(0, SPACE, step)]
    assert sum(matches) / len(matches) == pytest.approx(SELECTIVITY, rel=0.02)
    named = {name for number in range(0, SPACE, step) for name in rules.matching(number)}
    assert len(named) == RULES


def test_the_queries_give_what_their_definitions_say(tmp_path: Path) -> None:
    """The answers of q5, q7 and q11 add up to the bids, each of which is in five windows of q5; no
    bid comes before its auction."""
    source = nexmark.made(tmp_path, 30_000, 2)
    bids = list(events_of(source / "bids"))
    opened = {auction["auction"]: auction for auction in events_of(source / "auctions")}
    assert all(opened[bid["auction"]]["ts"] < bid["ts"] for bid in bids)
    highest = nexmark.q7(source)["answers"]
    assert highest[str(nexmark.BEGAN)] == max(bid["price"] for bid in bids[:10_000])
    assert len(highest) == 2  # the third window ends with the last bid, and no later one says so
    hot = nexmark.q5(source)["answers"][str(nexmark.BEGAN + 2_000)]
    seen = [bid["auction"] for bid in bids[2_000:12_000]]
    assert hot == [max(map(seen.count, set(seen))), [max(set(seen), key=seen.count)]]
    sessions = nexmark.q11(source)
    assert sum(sessions["answers"].values()) < len(bids)
    assert sessions["open"]


def test_a_wrong_answer_is_told(tmp_path: Path) -> None:
    """`difference` reports missing, surplus and wrong answers, and nothing if all are right."""
    assert answers.difference({"a": 1, "b": [2, 3.0]}, {"a": 1, "b": (2, 3)}) == ""
    told = answers.difference({"a": 1, "b": 2}, {"b": 3, "c": 4})
    assert told.startswith("1 missing, 1 too many, 1 wrong: a: none and not 1")
    (tmp_path / "part").write_text('["a", 1]\n["a", 1]\n')
    assert answers.written_once(tmp_path) == {"a": "twice"}
    (tmp_path / "part").write_text('["a", 5, 2]\n["a", 4, 1]\n')
    assert answers.written_last(tmp_path) == {"a": 5}


def test_changes_leave_what_was_not_taken_back(tmp_path: Path) -> None:
    """In any order, and with several rows of a key."""
    rows = [("a", 1, -1), ("a", 1, 1), ("a", 2, 1)]
    lines = [json.dumps({"key": key, "value": value, "diff": diff}) for key, value, diff in rows]
    (tmp_path / "answers").write_text("\n".join(lines))
    (tmp_path / "done").touch()
    assert answers.written_changes(tmp_path) == {"a": 2}


def test_markers_are_seen_once_their_line_is_whole(tmp_path: Path) -> None:
    """A line that is still being written shows nothing; hidden files neither."""
    seen = Seen(tmp_path)
    (tmp_path / ".part").write_text('["m8", 1]\n')
    (tmp_path / "part").write_text('["m-1", 1]\n["map", 1]\n["m2"')
    seen.look()
    assert seen.at.keys() == {-1}
    with (tmp_path / "part").open("a") as file:
        file.write(", 1]\n")
    seen.look()
    assert seen.at.keys() == {-1, 2}


def test_a_load_without_its_answers_makes_them(tmp_path: Path) -> None:
    """Made once, and the same the next time."""
    bench = Bench(tmp_path)
    first, again = LOADS["zipf"](bench, 500), LOADS["zipf"](bench, 500)
    assert first == again
    assert sum(first.expected.values()) == first.events == 500


def test_the_warm_rate_leaves_out_the_first_tenth() -> None:
    """With too little to see there is none."""
    assert warm_rate([(0, 0.0), (9, 4.0), (10, 5.0), (100, 6.0)], 100) == 90.0
    assert warm_rate([(0, 0.0), (100, 6.0)], 100) is None


def test_ratios_are_of_millstream_to_each_peer() -> None:
    """A row that failed has none, and a loop is no peer in a whole run."""
    rows = [
        {"name": "millstream", "whole_s": 10.0, "events_per_s": 300.0},
        {"name": "loops", "whole_s": 2.0, "events_per_s": 600.0},
        {"name": "bytewax", "whole_s": 20.0, "events_per_s": 100.0},
        {"name": "quix", "failed": "wrong"},
    ]
    assert figures("uniform", rows) == {
        "uniform_failed": 1.0,
        "uniform_warm_to_loops": 0.5,
        "uniform_warm_to_bytewax": 3.0,
        "uniform_whole_to_bytewax": 2.0,
        "uniform_whole_to_fastest": 2.0,
    }


def test_a_count_of_the_system_itself_is_only_in_the_fastest_whole_run() -> None:
    """As the page says: the peers' there, Millstream's nowhere."""
    rows = [
        {"name": "millstream", "whole_s": 10.0, "events_per_s": 300.0},
        {"name": "millstream_built_in", "whole_s": 1.0, "events_per_s": 900.0},
        {"name": "pathway", "whole_s": 40.0, "events_per_s": 100.0},
        {"name": "pathway_built_in", "whole_s": 5.0, "events_per_s": 100.0},
    ]
    assert figures("uniform", rows) == {
        "uniform_failed": 0.0,
        "uniform_warm_to_pathway": 3.0,
        "uniform_whole_to_pathway": 4.0,
        "uniform_whole_to_fastest": 0.5,
    }


def test_two_loops_share_the_files(tmp_path: Path) -> None:
    """Their answers add up to those of one, and so do the events that they have processed."""
    bench = Bench(tmp_path)
    loops = next(one for one in CONTESTANTS if one.name == "loops")
    for name in ("uniform", "rules"):
        load = LOADS[name](bench, 3_000)
        row = raced(loops, Run(bench.fresh("loops"), load), 60.0)
        assert "failed" not in row, row
        assert processed(list((tmp_path / "loops").glob("progress-*"))) == 3_000


def test_who_cannot_be_set_up_has_a_row_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the others are measured: an environment is missing, or a command fails."""
    monkeypatch.setenv("MILLSTREAM_PEERS", str(tmp_path / "peers"))
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    (tmp_path / "absent.txt").write_text("no requirement\n")
    loops = next(one for one in CONTESTANTS if one.name == "loops")
    absent = replace(loops, name="absent", environment="absent")
    broken = replace(loops, name="broken", prepare=lambda run: ["-c", "raise SystemExit('no')"])
    monkeypatch.setattr(cases, "CONTESTANTS", (absent, broken, loops))
    rows = cases._load("uniform", Bench(tmp_path), cases.Plan(3_000, rounds=2))
    assert [row["name"] for row in rows] == ["absent", "broken", "loops"]
    assert rows[0]["failed"].startswith("the environment of absent cannot be made: ERROR: Invalid")
    assert rows[1]["failed"].endswith("failed: no")
    assert rows[2]["whole_s"] > 0


def test_results_are_written_after_each_load(tmp_path: Path) -> None:
    """Merged with those of before: a load that is not reached keeps its rows and its commit."""
    plan = cases.Plan(1)
    written: list[Outcome] = []

    def keep(outcome: Outcome) -> None:
        written.append(outcome)
        found = record(outcome, {}, {"commit": "c", "dirty": False}, "today", quick=False)
        write(tmp_path, found)

    def evaluated(runs: dict[str, Callable[[], list[dict[str, Any]]]]) -> Outcome:
        bench = Bench(tmp_path, results=tmp_path)
        experiments = {
            name: Experiment(plan, lambda bench, plan, run=run: run()) for name, run in runs.items()
        }
        return Evaluation(bench, "peers", experiments, JUDGING, each=keep).outcome()

    def stopped() -> list[dict[str, Any]]:
        raise KeyboardInterrupt

    def failing() -> list[dict[str, Any]]:
        raise subprocess.CalledProcessError(1, ["pip"])

    def rows(value: float) -> list[dict[str, Any]]:
        return [{"what": "Millstream", "name": "millstream", "whole_s": value, "events_per_s": 1.0}]

    evaluated({"uniform": lambda: rows(1.0), "zipf": lambda: rows(2.0)})
    with pytest.raises(KeyboardInterrupt):
        evaluated({"uniform": lambda: rows(3.0), "zipf": stopped})
    assert [row["whole_s"] for row in written[-1].rows] == [3.0, 2.0]
    assert written[-1].settings["measured"].keys() == {"uniform", "zipf"}
    assert all(one["commit"] for one in written[-1].settings["measured"].values())
    last = evaluated({"uniform": failing, "zipf": lambda: rows(4.0)})
    assert [row.get("whole_s") for row in last.rows] == [4.0, None]


def test_snapshots_are_counted_by_their_epochs(tmp_path: Path) -> None:
    """The last epoch that is committed; none if there is none."""
    assert answers.snapshots(tmp_path) == 0
    for number, epochs in enumerate(([7], [])):
        with closing(sqlite3.connect(tmp_path / f"part-{number}.sqlite3")) as database:
            database.execute("create table commits (part_index, commit_epoch)")
            database.executemany("insert into commits values (0, ?)", [(one,) for one in epochs])
            database.commit()
    assert answers.snapshots(tmp_path) == 7


def test_a_table_has_failed_rows_last() -> None:
    """Failed rows have no figures."""
    rows = [
        {"experiment": "q7", "what": "A", "failed": "WRONG ANSWERS: 1 missing"},
        {"experiment": "q7", "what": "B", "whole_s": 2.0, "events_per_s": 1_234.0},
    ]
    measured = {"q7": {"plan": {"events": 5, "rounds": 1}, "commit": "abcdef0123456"}}
    record = {"rows": rows, "settings": {"measured": measured}, "machine": {"cores": 2, "cpu": "X"}}
    assert tables.part(record, "q7").splitlines()[2:4] == [
        "| B | 2 | 1,234 |",
        "| A | failed: wrong answers |  |",
    ]
