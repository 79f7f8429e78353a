"""GET /packages/{hash}: the code of Python jobs, for agents whose operator has allowed it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from millstream.server.answers import Refusal
from millstream.server.paths import Route, query
from millstream.server.service import Service
from millstream.stores.package_files import package_path


def routes(service: Service) -> list[Route]:
    async def package(request: Request) -> Response:
        query(request, ())
        path = package_path(service.store.path, request.path_params["hash"])
        if path is None:
            raise Refusal(404, "there is no package of this hash; a job's definition names its own")
        data = await service.in_thread(path.read_bytes)
        return Response(data, media_type="application/zip")

    return [Route("GET", ("packages", "{hash}"), package)]
