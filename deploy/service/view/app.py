"""Routes of `moot view`: an ASGI application over a folder's runs. Reading changes nothing; what acts is a POST."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from moot.deploy.results.report.blocks import Block, Heading, Note
from moot.deploy.results.report.html import page_policy, report_html
from moot.deploy.results.transcripts.transcript import build_transcript
from moot.deploy.service.errors import RequestError, error_response, validation_error
from moot.deploy.service.view.case_pages import CaseQuery
from moot.deploy.service.view.catalogue import FoundRun, RunCatalogue
from moot.deploy.service.view.guard import PageGuard
from moot.deploy.service.view.reports import RecordCache
from moot.protocols.errors import MootError, RecordError

_SOON_S = 3.0
"""Seconds that a browser waits for a report before it gets a page that waits by itself."""


def make_view(catalogue: RunCatalogue, token: str | None = None) -> ASGIApp:
    """The ASGI application over a folder's runs.

    Args:
        catalogue: the runs.
        token: what every request must show; None allows this machine without one.
    """
    routes = _Routes(catalogue)
    app = Starlette(
        routes=[
            Route("/", routes.start),
            Route("/runs.json", routes.runs),
            Route("/runs/{name}/", routes.run),
            Route("/runs/{name}/ready.json", routes.ready),
            Route("/runs/{name}/cases.json", routes.cases),
            Route("/runs/{name}/cases/{case:path}.json", routes.case),
        ],
        exception_handlers={Exception: _refused, MootError: _refused, RequestError: _refused, 404: _refused},
    )
    return PageGuard(app, token)


class _Routes:
    """What the pages ask for."""

    def __init__(self, catalogue: RunCatalogue) -> None:
        self._catalogue, self._cache = catalogue, RecordCache()

    async def start(self, request: Request) -> Response:
        """The list of runs."""
        blocks = [Heading(f"Runs in {self._catalogue.root}", 1)]
        return _page("moot view", blocks, {"runs": "runs.json"}, ["runs.js"])

    async def runs(self, request: Request) -> Response:
        """The list's rows."""
        return _json(await self._catalogue.list())

    async def run(self, request: Request) -> Response:
        """A run's report; of a large run, a page that shows it once it is ready."""
        run = await self._find(request)
        page = await self._cache.page(run, _SOON_S)
        if page is not None:
            return HTMLResponse(page, headers={"Content-Security-Policy": _policy({})})
        blocks: list[Block] = [Heading(f"Run {run.name}", 1), Note("The report is being built ...", "strong")]
        return _page(f"{run.name} - moot", blocks, {"served": True, "ready": "ready.json"}, ["runs.js"])

    async def ready(self, request: Request) -> Response:
        """Whether a run's report is ready; answers when it is, or after a while."""
        page = await self._cache.page(await self._find(request), 10.0)
        return _json({"ready": page is not None})

    async def cases(self, request: Request) -> Response:
        """A page of a run's cases, see `CaseQuery`."""
        run = await self._find(request)
        try:
            query = CaseQuery.model_validate(dict(request.query_params))
        except ValidationError as error:
            raise validation_error(error.errors()) from None
        index = await self._cache.cases(run)
        return _json(await asyncio.to_thread(index.page, query))

    async def case(self, request: Request) -> Response:
        """One debate."""
        run = await self._find(request)
        transcript = await asyncio.to_thread(build_transcript, run.path, request.path_params["case"])
        return Response(transcript.model_dump_json(), media_type="application/json")

    async def _find(self, request: Request) -> FoundRun:
        return await asyncio.to_thread(self._catalogue.find, request.path_params["name"])


def _page(title: str, blocks: Sequence[Block], data: dict[str, Any], scripts: Sequence[str]) -> Response:
    page = report_html(title, blocks, data, connect="'self'", more=scripts)
    return HTMLResponse(page, headers={"Content-Security-Policy": _policy(data, scripts)})


def _policy(data: Mapping[str, Any], scripts: Sequence[str] = ()) -> str:
    """As the page's own; that of a response can also refuse frames."""
    return page_policy(data, "'self'", scripts) + "; frame-ancestors 'none'"


def _json(content: Any) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")


async def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, MootError):  # written for people, about their own files
        status = 500 if isinstance(error, RecordError) else 404
        error = RequestError(status, str(error))
    return error_response(error)
