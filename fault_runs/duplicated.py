"""Deliveries that come more than once: requests, tasks and batches.

Senders repeat requests with their idempotency keys, at once or after the server was killed, and
some reuse a key for other records, which must be refused. Then, on Spark, tasks fail after they
have committed and are retried, and batches are repeated because the driver failed at a point after
the shards had committed them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import httpx
from pyspark import TaskContext

from fault_runs.hooks import at_points, tasks_by
from fault_runs.ledger import (
    Record,
    differing,
    encoded,
    entries,
    events_of,
    ledger,
    outcome_of,
    settings_of,
    until_done,
)
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from fault_runs.serving import kill, make_store, served
from millstream.driver.job import BatchJob, Row
from millstream.errors import RunError
from millstream.spark import runner, worker
from millstream.spark.function_pickle import PackedPlan

COUNT, A_REQUEST = 500, 25
POINTS = ("slates-committed", "batch-recorded", "sinks-published")
Requests = list[tuple[str, bytes]]


def duplicated(seed: int, folder: Path, context: Context) -> Result:
    """Each entry counts once, however often it was delivered."""
    random, app = Random(seed), ledger("entries")
    given = entries(random, COUNT)
    settings = settings_of(folder, {"entries": "log"}, lane=random.choice(["one-task", "shuffled"]))
    make_store(app, settings.storage.store, 3)
    sent, refused = _send_repeatedly(random, settings.storage.store, given)
    stops = {(random.choice(POINTS), batch) for batch in random.sample(range(5), 3)}

    def stop(point: str, batch: int) -> None:
        if (point, batch) in stops:
            stops.remove((point, batch))
            raise RunError(f"batch {batch}: this fault run stops the driver at {point}")

    with _failing_tasks(seed), at_points(stop):
        starts = until_done(partial(runner.run, app, settings, context=context.spark))
    found = differing(app, events_of("entries", given), outcome_of(app, folder))
    repeated = len(starts.stopped)
    lane = settings.batches.lane
    note = f"{sent} requests for {COUNT // A_REQUEST}, {repeated} batches repeated, {lane}"
    strange = [error for error in starts.stopped if "this fault run" not in error]
    if strange:
        return Result("duplicated-deliveries", seed, 0, 0, failed=strange[0])
    if not refused:
        return Result("duplicated-deliveries", seed, 0, 0, failed="a reused key was not refused")
    return Result(
        "duplicated-deliveries",
        seed,
        found.lost,
        found.doubled,
        tuple(starts.recovery),
        "; ".join(filter(None, (note, found.note))),
    )


def _send_repeatedly(random: Random, store: Path, given: list[Record]) -> tuple[int, bool]:
    """Send all entries, each request up to four times.

    Returns the number of requests, and True if another body under a known key was refused.
    """
    requests: Requests = []
    for start in range(0, len(given), A_REQUEST):
        body = b"\n".join(encoded(given[start : start + A_REQUEST]))
        requests.append((f"request-{start}", body))
    middle = random.randrange(1, len(requests))
    sent, known = 0, requests[:middle]
    for part in (requests[:middle], random.sample(known, len(known) // 2) + requests[middle:]):
        again = [one for one in part for _ in range(random.randrange(1, 5))]
        random.shuffle(again)
        with served(store) as server, httpx.Client(base_url=server.url) as client:
            with ThreadPoolExecutor(3) as threads:
                answers = list(threads.map(partial(_post, client), again))
            assert all(answer.status_code == 200 for answer in answers), answers
            sent += len(again)
            refused = _post(client, (requests[0][0], requests[-1][1])).status_code == 422
            kill(server)
    return sent, refused


def _post(client: httpx.Client, request: tuple[str, bytes]) -> httpx.Response:
    key, body = request
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
    return client.post("/streams/entries", content=body, headers=headers)


def _failing_tasks(seed: int) -> Any:
    """Make tasks fail after their commit, as often as the seed decides; Spark retries them."""
    return tasks_by(
        SimpleNamespace(
            **vars(worker)
            | {
                "whole_batch": partial(_whole_batch, seed),
                "layer_stage": partial(_layer_stage, seed),
            }
        )
    )


def _whole_batch(seed: int, packed: PackedPlan, rows: Iterable[object]) -> Iterator[Row]:
    job = worker.job_of_task()
    yield from _then_fails(seed, job, 0, lambda: worker.whole_batch(packed, rows))


def _layer_stage(
    seed: int, packed: PackedPlan, job: BatchJob, layer: int, upstream: int, rows: Iterable[Row]
) -> Iterator[Row]:
    def work() -> Iterator[Row]:
        return worker.layer_stage(packed, job, layer, upstream, rows)

    yield from _then_fails(seed, job, layer, work)


def _then_fails(
    seed: int, job: BatchJob, layer: int, work: Callable[[], Iterator[Row]]
) -> Iterator[Row]:
    """Do all of the work, including its commit, and then fail if this attempt should fail."""
    done = list(work())
    task = TaskContext.get()
    assert task is not None
    draw = Random(f"{seed} {job.beat.batch} {layer} {task.partitionId()}")
    if task.attemptNumber() < draw.choice([0, 0, 1, 2]):
        raise RuntimeError("this fault run ends the task after its commit")
    yield from done


DUPLICATED = Scenario("duplicated-deliveries", "every delivery counts once", duplicated)
