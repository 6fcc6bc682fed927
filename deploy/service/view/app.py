"""Routes of `moot view`: an ASGI application over a folder's runs. Reading changes nothing; actions are POST
requests."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from moot.deploy.results.report.blocks import Heading, Note
from moot.deploy.results.run_report.debates import SentReplies, debate_page
from moot.deploy.results.text import shell_path
from moot.deploy.results.transcript import DebateTables, build_transcript
from moot.deploy.service.errors import RequestError, validation_error
from moot.deploy.service.sse import EventStreamResponse
from moot.deploy.service.view.actions import DecisionBody
from moot.deploy.service.view.case_pages import CaseQuery
from moot.deploy.service.view.catalogue import FoundRun, RunCatalogue
from moot.deploy.service.view.followed import FollowedRuns, OwnProcess
from moot.deploy.service.view.guard import PageGuard
from moot.deploy.service.view.refusals import refused
from moot.deploy.service.view.reports import FORMS, LIST, Page, RecordCache, make_page
from moot.protocols.errors import MootError

_SOON_S = 3.0
"""Seconds that a browser waits for a report before it gets a page that polls for it."""

_MOST_REPORTED = 200_000
"""Most cases of a run whose report is built here: beyond that it takes minutes, and gigabytes."""

_READY_S = 10.0
"""Seconds of one poll of such a page."""

_MOST_COMPARED = 6
"""Most runs of one report."""

T = TypeVar("T")


class _CaseId(PathConvertor):
    """Path parameter for a case's id: any text, even with slashes and line ends."""

    regex = "(?s:.+)"


register_url_convertor("case_id", _CaseId())


def make_view(catalogue: RunCatalogue, token: str | None = None, process: OwnProcess | None = None) -> View:
    """ASGI application over a folder's runs.

    Args:
        catalogue: the runs.
        token: required token; None allows this machine without one.
        process: this process, if it works on the only run of the catalogue; None otherwise.
    """
    followed = FollowedRuns(process)
    routes = _Routes(catalogue, followed, "" if process is None else process.others)
    run = "/runs/{name}"
    app = Starlette(
        routes=[
            Route("/", routes.start),
            Route("/runs.json", routes.runs),
            Route("/compare", routes.compare),
            Route(run, routes.with_slash),
            Route(f"{run}/", routes.run),
            Route(f"{run}/ready.json", routes.ready),
            Route(f"{run}/live.json", routes.live),
            Route(f"{run}/events", routes.events),
            Route(f"{run}/stop", routes.stop, methods=["POST"]),
            Route(f"{run}/decisions.json", routes.pending),
            Route(f"{run}/decisions", routes.decide, methods=["POST"]),
            Route(f"{run}/cases.json", routes.cases),
            Route(f"{run}/cases/{{case:case_id}}.json", routes.case),
            Route(f"{run}/cases/{{case:case_id}}/events", routes.debate),
        ],
        exception_handlers={Exception: refused, MootError: refused, HTTPException: refused},
    )
    app.router.redirect_slashes = False  # it decodes names
    return View(PageGuard(app, token), followed)


class View:
    """Application of `moot view`, with the runs that it follows."""

    def __init__(self, app: ASGIApp, followed: FollowedRuns) -> None:
        self._app, self._followed = app, followed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        await self._app(scope, receive, send)

    async def close(self) -> None:
        """End every stream."""
        await self._followed.close()


class _Routes:
    """Routes of the pages."""

    def __init__(self, catalogue: RunCatalogue, followed: FollowedRuns, others: str) -> None:
        self._catalogue, self._followed, self._others = catalogue, followed, others
        self._cache = RecordCache({} if catalogue.only else {"home": "../../"})

    async def start(self, request: Request) -> Response:
        """List of runs; for a single run, its page."""
        if (only := self._catalogue.only) is not None:
            return _redirect(request, f"runs/{quote(only.name, safe='')}/")
        blocks = [Heading(f"Runs in {self._catalogue.root}", 1)]
        return _html(make_page("moot view", blocks, {"runs": "runs.json"}, LIST))

    async def with_slash(self, request: Request) -> Response:
        """The address of a run's page without its last slash: what the page asks for is relative to it."""
        return _redirect(request, f"./{quote(request.path_params['name'], safe='')}/")

    async def runs(self, request: Request) -> Response:
        """Rows of the list."""
        return _json(await self._catalogue.list())

    async def compare(self, request: Request) -> Response:
        """Report of several runs, each named by a parameter `run`; the first one is the baseline."""
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 2 <= len(names) <= _MOST_COMPARED:
            raise RequestError(422, f"name 2 to {_MOST_COMPARED} runs to compare, not {len(names)}")
        runs = [await asyncio.to_thread(self._catalogue.find, name) for name in names]
        return _html(await self._cache.comparison(runs))

    async def run(self, request: Request) -> Response:
        """Page of a run: its live figures while it is in progress, unless its report is requested."""
        run = await self._find(request)
        index = await self._cache.cases_within(run, _SOON_S)
        title, blocks = f"{run.name} - moot", [Heading(f"Run {run.name}", 1)]
        if index is None:
            note = Note("The record is being read ...", "strong")
            return _html(make_page(title, [*blocks, note], {"ready": "ready.json?of=cases"}, ["text.js", "runs.js"]))
        if "report" not in request.query_params and await asyncio.to_thread(run.is_live):
            data = {"live": "events", "others": self._others, **self._cache.data(index)}
            return _html(make_page(title, blocks, data, [*FORMS, "figures.js", "streams.js", "live.js", "reading.js"]))
        if index.total > _MOST_REPORTED:
            note = Note(
                f"Of so many cases the figures are not computed here: moot report {shell_path(run.path)}", "strong"
            )
            return _html(make_page(title, [*blocks, note], self._cache.data(index), FORMS))
        if (page := await self._cache.report(run, _SOON_S)) is not None:
            return _html(page)
        note = Note("The figures are being computed; the cases can be read already.", "strong")
        return _html(
            make_page(title, [*blocks, note], {"ready": "ready.json", **self._cache.data(index)}, [*FORMS, "runs.js"])
        )

    async def ready(self, request: Request) -> Response:
        """Whether a run's report, or the index of its cases, is ready; responds when it is, or after a while."""
        run = await self._find(request)
        wait = self._cache.cases_within if request.query_params.get("of") == "cases" else self._cache.report
        return _json({"ready": await wait(run, _READY_S) is not None})

    async def live(self, request: Request) -> Response:
        """Whether a process works on a run: a page whose run has ended asks whether it was resumed."""
        run = await self._find(request)
        return _json({"live": await asyncio.to_thread(run.is_live)})

    async def events(self, request: Request) -> Response:
        """Server-sent events of a run in progress: its figures and charts."""
        run = await self._find(request)
        place = ExitStack()
        live = await self._followed.follow(run, place)
        return EventStreamResponse(place, live.updates())

    async def debate(self, request: Request) -> Response:
        """Server-sent events of a debate of a run in progress."""
        run = await self._find(request)
        place = ExitStack()
        live = await self._followed.follow(run, place)
        return EventStreamResponse(place, live.debate(request.path_params["case"]))

    async def stop(self, request: Request) -> Response:
        """Stop a run after calls in flight."""
        run = await self._find(request)
        await _body(request, _Empty)
        return _json({"message": await self._followed.control(run).stop()})

    async def pending(self, request: Request) -> Response:
        """Forms of a run that wait for a person."""
        return _json(await self._followed.control(await self._find(request)).pending())

    async def decide(self, request: Request) -> Response:
        """Answer a form."""
        run = await self._find(request)
        body = await _body(request, DecisionBody)
        return _json({"message": await self._followed.control(run).decide(body)})

    async def cases(self, request: Request) -> Response:
        """Page of a run's cases, see `CaseQuery`."""
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
        return _json(await asyncio.to_thread(_debate, run, request.path_params["case"]))

    async def _find(self, request: Request) -> FoundRun:
        run = await asyncio.to_thread(self._catalogue.find, request.path_params["name"])
        request.state.run = run.path
        return run


class _Empty(msgspec.Struct, forbid_unknown_fields=True):
    """Body of a request without content."""


async def _body(request: Request, what: type[T]) -> T:
    """JSON body of a request. A form of another site cannot send JSON.

    Raises:
        RequestError: 415 or 422.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, "the body's content type is not JSON")
    try:
        return msgspec.json.decode(await request.body(), type=what)
    except (ValueError, RecursionError) as error:
        raise RequestError(422, str(error)) from None


def _debate(run: FoundRun, case_id: str) -> dict[str, Any]:
    """A debate of a run; while a process works on the run, a retry is shown as it is written."""
    sent = SentReplies(DebateTables(run.path, [case_id], with_requests=True), [case_id])
    return debate_page(build_transcript(run.path, case_id, under_way=run.is_live()), sent)


def _redirect(request: Request, place: str) -> Response:
    """Redirect to a relative address, with the request's query."""
    query = request.scope["query_string"].decode("latin-1")
    return Response(status_code=307, headers={"Location": f"{place}?{query}" if query else place})


def _html(page: Page) -> Response:
    return HTMLResponse(page.html, headers={"Content-Security-Policy": page.policy})


def _json(content: Any) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")
