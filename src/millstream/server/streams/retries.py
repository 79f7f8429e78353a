"""Retrying dead letters: POST /deadletters/retry, and POST /actions/{name}/retry.

The body selects letters, as JSON (`letters.selection.LetterFilter`). The answer says how many are
retried, and is sent once they are on disk. A repeated request retries none twice. The dead letters
of an action are put back all together.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.actions.record import known
from millstream.actions.retry import put_back
from millstream.description import Description
from millstream.errors import InputError
from millstream.letters.retry_log import retry_letters
from millstream.letters.selection import LetterFilter
from millstream.log.stream_logs import FolderLogs, PlaceLogs
from millstream.messages.letters import (
    ActionRetryAnswer,
    ActionRetryQuestion,
    Retried,
    RetryQuestion,
)
from millstream.nearest import did_you_mean
from millstream.places.place_address import place_at
from millstream.server.http.answers import Refusal, json_answer
from millstream.server.http.paths import Route, query, segment
from millstream.server.service import Service

_decode = msgspec.json.Decoder(RetryQuestion).decode
_decode_put_back = msgspec.json.Decoder(ActionRetryQuestion).decode


def routes(service: Service) -> list[Route]:
    one_at_a_time = asyncio.Lock()

    async def retry(request: Request) -> Response:
        query(request, ())
        try:
            wanted = _filter_in(await request.body() or b"{}")
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise Refusal(400, f"the body must select letters, as JSON: {error}") from None
        description, options = service.store.description(), service.options
        async with one_at_a_time:
            try:
                outcome = await service.in_thread(
                    _retried, service.store.path, options.place, description, wanted
                )
            except InputError as error:  # no function has this name, or it does not divert events
                raise Refusal(404, str(error)) from None
        return json_answer(outcome)

    async def retry_action(request: Request) -> Response:
        query(request, ())
        try:
            question = _decode_put_back(await request.body() or b"{}")
        except msgspec.DecodeError as error:
            raise Refusal(400, f"the body must be empty, or say dry_run: {error}") from None
        store, action = service.store.path, segment(request, "name")
        actions = known(store)
        if action not in actions:
            hint = did_you_mean(action, actions) if actions else "there is none yet"
            raise Refusal(404, f"there is no action {action[:100]!r}; {hint}")
        place = place_at(service.options.place) if service.options.place else None
        async with one_at_a_time:
            given = await service.in_thread(
                lambda: put_back(store, action, place, dry_run=question.dry_run)
            )
        return json_answer(ActionRetryAnswer(given))

    return [
        Route("POST", ("deadletters", "retry"), retry),
        Route("POST", ("actions", "{name}", "retry"), retry_action),
    ]


def _filter_in(body: bytes) -> LetterFilter:
    """Decodes the filter in a body; in JSON, 5.0 is a whole number too."""
    question = _decode(body)
    return msgspec.convert({**msgspec.structs.asdict(question), **_whole(question)}, LetterFilter)


def _whole(question: RetryQuestion) -> dict[str, int | float | None]:
    numbers = {"since": question.since, "until": question.until, "limit": question.limit}
    return {
        name: int(number) if isinstance(number, float) and number.is_integer() else number
        for name, number in numbers.items()
    }


def _retried(
    store: Path, address: str, description: Description | None, wanted: LetterFilter
) -> Retried:
    overflows = {} if description is None else description.overflows
    functions = [] if description is None else description.function_names
    if not address:
        return retry_letters(FolderLogs(store / "logs"), wanted, overflows, functions)
    logs = PlaceLogs(place_at(address), store / "retry-logs")
    try:
        return retry_letters(logs, wanted, overflows, functions)
    finally:
        logs.close()
