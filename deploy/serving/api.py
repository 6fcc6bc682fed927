"""The routes of the server, as an ASGI application over the services; its schema is at /openapi.json."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, aclosing
from typing import Annotated, Any

from fastapi import FastAPI, Header, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moot.deploy.serving.answers import ErrorBody, Health, State, Stats
from moot.deploy.serving.bodies import describe, described, json_of
from moot.deploy.serving.guard import Guard, refusal
from moot.deploy.serving.jobs import Job
from moot.deploy.serving.refusals import Refused, invalid
from moot.deploy.serving.requests import ID
from moot.deploy.serving.service import Service
from moot.deploy.serving.services import REQUESTS, Services
from moot.deploy.serving.settings import KINDS, Kind
from moot.deploy.serving.stream import stream
from moot.protocols.errors import ActorGone

LONGEST_WAIT_S = 60.0
SEND_S = 30.0
"""Seconds that a chunk of a stream may take to be sent."""


CaseId = Annotated[str, Path(pattern=ID, description="As given, or as the answer to the request named it.")]
Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT_S, description="Seconds to wait for the end; 0 answers at once.")]
LastEventId = Annotated[str, Header(description="The id of the last event that was read; what follows it is sent.")]

_WHY = {
    400: "the body is no JSON",
    401: "the token is missing or wrong",
    403: "no token is configured, and the client is not on this machine",
    404: "unknown, or not offered by this server",
    408: "the body did not come in time",
    409: "the id has other content, or the request has ended already",
    413: "the body is too long",
    415: "the body is not sent as JSON",
    422: "the body or a parameter is not what it should be",
    429: "too many are open or queued: Retry-After says when to ask again",
    503: "the server is stopping, waits for a model that is down, or has been stopped by a budget",
}

_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "events, then `end`"}
}

_ENDED: dict[int | str, dict[str, Any]] = {200: {"model": State, "description": "it has ended already"}}


def make_api(services: Services) -> ASGIApp:
    """The application that answers for opened services; it neither opens nor closes them."""
    app = FastAPI(
        title="moot",
        description="Debates of language models, panels of judges and checks of claims.",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    _add_probes(app, services)
    post: dict[Kind, Callable[..., Any]] = {"debates": _post_debate, "judgments": _post_judgment, "checks": _post_check}
    app.state.services = services
    for kind in KINDS:
        routes = _Routes(services, kind)
        wanted: dict[str, Any] = {"tags": [kind], "dependencies": [], "response_model": State}
        base, one, singular = f"/v1/{kind}", f"/v1/{kind}/{{id}}", kind.removesuffix("s")
        app.add_api_route(
            base, post[kind], methods=["POST"], status_code=202, operation_id=f"ask_{singular}",
            openapi_extra=described(REQUESTS[kind]),
            responses={**_ENDED, **_errors(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503)}, **wanted,
        )  # fmt: skip
        app.add_api_route(
            one, routes.read, methods=["GET"], operation_id=f"read_{singular}",
            responses=_errors(401, 403, 404, 422, 429, 503), **wanted,
        )  # fmt: skip
        app.add_api_route(
            one, routes.cancel, methods=["DELETE"], operation_id=f"cancel_{singular}",
            responses=_errors(401, 403, 404, 409, 422, 503), **wanted,
        )  # fmt: skip
        app.add_api_route(
            f"{one}/events", routes.events, methods=["GET"], operation_id=f"follow_{singular}", tags=[kind],
            response_class=StreamingResponse,
            responses={**_STREAMED, **_errors(401, 403, 404, 422, 429, 503)},
        )  # fmt: skip
    app.add_exception_handler(HTTPException, _tell)
    app.add_exception_handler(RequestValidationError, _tell_invalid)
    app.add_exception_handler(Exception, _tell_nothing)
    describe(app, *REQUESTS.values())
    return Guard(app, services.token, services.config.max_body_bytes, services.config.max_queued_bytes)


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorBody, "description": _WHY[status]} for status in statuses}


def _add_probes(app: FastAPI, services: Services) -> None:
    async def healthz() -> Health:
        """Whether the server lives."""
        try:
            services.check()
        except ActorGone as error:
            raise Refused(503, str(error), "broken") from None
        return Health(status="ok")

    async def readyz() -> Health:
        """Whether requests are taken now."""
        if refused := services.refused():
            told = f"{', '.join(refused)}: not taken now; the answer to a request says why"  # anybody may ask this
            raise Refused(503, told, "not_ready", retry_after_s=5)
        return Health(status="ready")

    async def stats() -> Stats:
        """What is open and queued, and how requests have ended since the replica started."""
        return services.stats()

    app.add_api_route("/healthz", healthz, response_model=Health, responses=_errors(503), tags=["probes"])
    app.add_api_route("/readyz", readyz, response_model=Health, responses=_errors(503), tags=["probes"])
    app.add_api_route("/v1/stats", stats, response_model=Stats, responses=_errors(401, 403), tags=["probes"])


async def _accept(request: Request, kind: Kind, wait_s: float) -> Response:
    services: Services = request.app.state.services
    service = services.of(kind)
    job = await service.accept(await json_of(request))
    if services.has_place:
        await _wait(services, request, job, wait_s)
    return _told(service, job, 200 if job.done.is_set() else 202)


async def _post_debate(request: Request, wait_s: Wait = 0.0) -> Response:
    """Have a case debated. 202 says where its verdict will be; 200 has it, where there was one in time."""
    return await _accept(request, "debates", wait_s)


async def _post_judgment(request: Request, wait_s: Wait = 0.0) -> Response:
    """Have a reply judged by the panel. 202 says where that will be; 200 has it, where there was one in time."""
    return await _accept(request, "judgments", wait_s)


async def _post_check(request: Request, wait_s: Wait = 0.0) -> Response:
    """Have a claim checked. 202 says where the verdict will be; 200 has it, where there was one in time."""
    return await _accept(request, "checks", wait_s)


async def _wait(services: Services, request: Request, job: Job, wait_s: float) -> None:
    """Until it has ended or the client has hung up, or for so long."""
    if wait_s <= 0 or job.done.is_set():
        return
    with services.holding():
        either = [asyncio.ensure_future(each) for each in (job.done.wait(), _hung_up(request))]
        try:
            await asyncio.wait(either, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in either:
                each.cancel()
            await asyncio.gather(*either, return_exceptions=True)


async def _hung_up(request: Request) -> None:
    """Returns when the client has gone; its body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _told(service: Service, job: Job, status: int = 200) -> Response:
    headers = {"Location": f"/v1/{service.kind}/{job.id}", "Cache-Control": "no-store"}
    if job.engine_s is not None:
        headers["Server-Timing"] = f"engine;dur={1000 * job.engine_s:.1f}"
    return Response(service.state(job).model_dump_json(), status, headers, "application/json")


class _Stream(StreamingResponse):
    """A stream that has its place before its first header, and gives it back when it has been sent or has broken off.

    It breaks off when a chunk has not been sent within `SEND_S`: its reader does not read.

    Args:
        place: closed at the end.
        chunks: what is sent; closed at the end.
    """

    def __init__(self, place: ExitStack, chunks: AsyncGenerator[bytes, None], **options: Any) -> None:
        super().__init__(chunks, **options)
        self._place, self._chunks = place, chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""

        async def sending(message: Message) -> None:
            try:
                async with asyncio.timeout(SEND_S):
                    await send(message)
            except TimeoutError:
                raise Refused(408, f"nothing was read for {SEND_S:g} seconds") from None

        with self._place:
            async with aclosing(self._chunks):
                await super().__call__(scope, receive, sending)


class _Routes:
    """What can be asked of one that was accepted."""

    def __init__(self, services: Services, kind: Kind) -> None:
        self._services, self._kind = services, kind

    async def _find(self, case_id: str) -> tuple[Service, Job]:
        service = self._services.of(self._kind)
        job = await service.find(case_id)
        if job is None:
            raise Refused(404, f"no such {self._kind.removesuffix('s')}")
        return service, job

    async def read(self, request: Request, id: CaseId, wait_s: Wait = 0.0) -> Response:
        """Where it stands, and its verdict once there is one."""
        service, job = await self._find(id)
        await _wait(self._services, request, job, wait_s)
        return _told(service, job)

    async def cancel(self, id: CaseId) -> Response:
        """Cancel it: its calls are cancelled where they are made. What was paid for stays on record."""
        service, job = await self._find(id)
        if not await service.withdraw(job):
            status = service.status(job)
            raise Refused(409, f"{id} is {status}: there is nothing to cancel", "ended")
        return _told(service, job)

    async def events(self, id: CaseId, last_event_id: LastEventId = "") -> Response:
        """What happens, as server-sent events, from the first one to `end`. Hanging up cancels nothing."""
        service, job = await self._find(id)

        chunks = stream(service, job, last_event_id, self._services.config.stream_s)
        place = ExitStack()
        place.enter_context(self._services.holding())
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return _Stream(place, chunks, media_type="text/event-stream", headers=headers)


async def _tell(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refusal(error)


async def _tell_nothing(request: Request, error: Exception) -> Response:
    """What was not foreseen is in the log, which the guard writes."""
    return refusal(Refused(500, "the server could not answer: its log says why"))


async def _tell_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return refusal(invalid(error.errors()))
