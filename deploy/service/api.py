"""HTTP routes: an ASGI application over the services, with its schema at /openapi.json."""

import asyncio
from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import FastAPI, Header, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from moot.deploy.service.errors import RequestError, error_response, validation_error
from moot.deploy.service.guard import Guard
from moot.deploy.service.jobs import Job
from moot.deploy.service.request_models import ID, REQUESTS, describe, described, json_of
from moot.deploy.service.response_models import ErrorBody, Health, RequestState, ServerStats
from moot.deploy.service.services import Services
from moot.deploy.service.settings import KINDS, Kind
from moot.deploy.service.sse import EventStreamResponse
from moot.deploy.service.stream import event_stream
from moot.protocols.errors import ActorGone

LONGEST_WAIT_S = 60.0

CaseId = Annotated[str, Path(pattern=ID, description="The given id, or the one in the response to the request.")]
Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT_S, description="Seconds to wait for the end; 0 answers at once.")]
LastEventId = Annotated[str, Header(description="The id of the last event read; later events are sent.")]

_WHY = {
    400: "the body is not valid JSON",
    401: "the token is missing or wrong",
    403: "no token is configured, and the client is not on this machine",
    404: "unknown, or not offered by this server",
    408: "the body did not arrive in time",
    409: "the id is in use with other content, or the request has ended",
    410: "the request was accepted, and damage of the server's disk has lost it",
    413: "the body is too long",
    415: "the body's content type is not JSON",
    422: "the body or a parameter is invalid",
    429: "too many are open or queued: Retry-After says when to retry",
    503: "the server is stopping, waits for a model that is down, or has been stopped by a budget",
}

_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "events, then `end`"}
}

_ENDED: dict[int | str, dict[str, Any]] = {200: {"model": RequestState, "description": "the request has ended"}}


def make_api(services: Services) -> ASGIApp:
    """ASGI application over opened services; it neither opens nor closes them."""
    app = FastAPI(
        title="moot",
        description="Debates of language models, panels of judges and checks of claims.",
        version="1",
        docs_url=None,
        redoc_url=None,
    )
    probes = _Probes(services)
    app.add_api_route("/healthz", probes.healthz, responses=_errors(503), tags=["probes"])
    app.add_api_route("/readyz", probes.readyz, responses=_errors(503), tags=["probes"])
    app.add_api_route("/v1/stats", probes.stats, responses=_errors(401, 403), tags=["probes"])
    for kind in KINDS:
        routes = _Routes(services, kind)
        one = f"/v1/{kind}/{{id}}"
        answer: dict[str, Any] = {"response_model": RequestState}
        post: dict[str, Any] = {"status_code": 202, "openapi_extra": described(REQUESTS[kind]), **answer}
        live: dict[str, Any] = {"response_class": StreamingResponse}
        for path, method, verb, does, responses, more in (
            (f"/v1/{kind}", "POST", "ask", routes.accept, _ENDED | _errors(400, 408, 409, 413, 415, 429), post),
            (one, "GET", "read", routes.read, _errors(410, 429), answer),
            (one, "DELETE", "cancel", routes.cancel, _errors(409, 410), answer),
            (f"{one}/events", "GET", "follow", routes.events, _STREAMED | _errors(410, 429), live),
        ):
            app.add_api_route(
                path, does, methods=[method], operation_id=f"{verb}_{kind.removesuffix('s')}", tags=[kind],
                responses={**responses, **_errors(401, 403, 404, 422, 503)}, **more,
            )  # fmt: skip
    app.add_exception_handler(HTTPException, _error_response)
    app.add_exception_handler(RequestValidationError, _error_response)
    app.add_exception_handler(Exception, _error_response)
    describe(app, *REQUESTS.values())
    return Guard(app, services.token, services.config.max_body_bytes, services.config.max_queued_bytes)


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorBody, "description": _WHY[status]} for status in statuses}


async def _error_response(request: Request, error: Exception) -> Response:
    """The error as a response; the guard logs unexpected ones."""
    if isinstance(error, RequestValidationError):
        return error_response(validation_error(error.errors()))
    return error_response(error)


class _Probes:
    """Routes of the whole server."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def healthz(self) -> Health:
        """Liveness probe."""
        try:
            self._services.check()
        except ActorGone as error:
            raise RequestError(503, str(error), "broken") from None
        return Health(status="ok")

    async def readyz(self) -> Health:
        """Readiness probe: whether requests are accepted now."""
        if refused := self._services.unavailable():
            # Readable without a token, so without reasons.
            message = f"{', '.join(refused)}: refused now; the response to a request says why"
            raise RequestError(503, message, "not_ready", retry_after_s=5)
        return Health(status="ready")

    async def stats(self) -> ServerStats:
        """Open and queued requests, and outcomes since the server started."""
        return self._services.stats()


class _Routes:
    """Routes of one kind of request."""

    def __init__(self, services: Services, kind: Kind) -> None:
        self._services, self._kind = services, kind

    async def accept(self, request: Request, wait_s: Wait = 0.0) -> Response:
        """Accept a request. 202 links to the future verdict; 200 contains it, if it was ready in time."""
        service = self._services.of(self._kind)
        job = await service.accept(await json_of(request))
        if self._services.has_capacity:
            await self._wait(request, job, wait_s)
        return self._response(job, 200 if job.done.is_set() else 202)

    async def read(self, request: Request, id: CaseId, wait_s: Wait = 0.0) -> Response:
        """State of a request, with its verdict if it has one."""
        job = await self._services.of(self._kind).find(id)
        await self._wait(request, job, wait_s)
        return self._response(job)

    async def cancel(self, id: CaseId) -> Response:
        """Cancel a request and its calls in flight. Recorded replies stay in the record."""
        service = self._services.of(self._kind)
        job = await service.find(id)
        if not await service.cancel(job):
            raise RequestError(409, f"{id} is {service.status(job)}: there is nothing to cancel", "ended")
        return self._response(job)

    async def events(self, id: CaseId, last_event_id: LastEventId = "") -> Response:
        """Server-sent events of a request, from the first to `end`. Disconnecting cancels nothing."""
        service = self._services.of(self._kind)
        chunks = event_stream(service, await service.find(id), last_event_id, self._services.config.stream_s)
        place = ExitStack()
        place.enter_context(self._services.connection_slot())
        return EventStreamResponse(place, chunks)

    async def _wait(self, request: Request, job: Job, wait_s: float) -> None:
        """Wait until the job has ended, the client disconnects, or the time is up."""
        if wait_s <= 0 or job.done.is_set():
            return
        with self._services.connection_slot():
            either = [asyncio.ensure_future(each) for each in (job.done.wait(), _client_disconnected(request))]
            try:
                await asyncio.wait(either, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in either:
                    each.cancel()
                await asyncio.gather(*either, return_exceptions=True)

    def _response(self, job: Job, status: int = 200) -> Response:
        headers = {"Location": f"/v1/{self._kind}/{job.id}", "Cache-Control": "no-store"}
        if job.engine_s is not None:
            headers["Server-Timing"] = f"engine;dur={1000 * job.engine_s:.1f}"
        state = self._services.of(self._kind).state(job)
        return Response(state.model_dump_json(), status, headers, "application/json")


async def _client_disconnected(request: Request) -> None:
    """Return when the client disconnects; its body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
