"""GET /packages/{hash}: the code of Python jobs, for agents whose operator has allowed it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from millstream.places.place_address import place_at
from millstream.server.http.answers import Refusal
from millstream.server.http.paths import Route, query, segment
from millstream.server.service import Service
from millstream.stores.package_files import package_path


def routes(service: Service) -> list[Route]:
    async def package(request: Request) -> Response:
        query(request, ())
        place = place_at(service.options.place) if service.options.place else None
        name = segment(request, "hash")
        path = await service.in_thread(lambda: package_path(service.store.path, name, place))
        if path is None:
            raise Refusal(
                404, "there is no package with this hash; a job's definition names its package"
            )
        data = await service.in_thread(path.read_bytes)
        return Response(data, media_type="application/zip")

    return [Route("GET", ("packages", "{hash}"), package, "agent")]
