"""Responses to requests that fail: a page for a person in a browser, and JSON for programs."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from moot.deploy.results.report.blocks import Block, Heading, Note
from moot.deploy.results.text import shell_path, visible_line
from moot.deploy.service.errors import RequestError, error_response
from moot.deploy.service.view.reports import NOT_COMPARABLE, Page, make_page
from moot.protocols.errors import MootError, RecordError

UNREADABLE = "unreadable"
"""Code of an error of a record that cannot be read."""

_PASSING = (429, 503)
"""Statuses of errors that pass by themselves."""


async def refused(request: Request, error: Exception) -> Response:
    """Response to a request that failed."""
    if isinstance(error, RecordError):
        error = RequestError(422, str(error), UNREADABLE)
    elif isinstance(error, MootError):  # written for users, about their own files
        error = RequestError(404 if request.method == "GET" else 422, str(error))
    if not _is_navigation(request):
        return error_response(error)
    known = error if isinstance(error, HTTPException) else RequestError(500, "internal server error")
    page = make_page("moot view", list(_blocks(request, known)), {"home": _root(request)})
    headers = {**(known.headers or {}), "Content-Security-Policy": page.policy}
    return HTMLResponse(page.html, known.status_code, headers)


def refuse_entry(scope: Scope, error: Exception) -> Response:
    """Response to a request that is not let in: it needs a token, or comes from where none may."""
    request = Request(scope)
    if not isinstance(error, RequestError) or error.code not in _ENTRY or not _is_navigation(request):
        return error_response(error)
    page = _entry_page(error.code, str(error.detail))
    return HTMLResponse(page.html, error.status_code, {**(error.headers or {}), "Content-Security-Policy": page.policy})


_ENTRY = {
    "unauthorized": (
        "A token is needed",
        "The terminal of moot view, or of moot run --watch, shows the address to open. It ends in ?token=$MOOT_TOKEN: "
        "replace $MOOT_TOKEN by the value of this environment variable of the server. A browser needs it once.",
    ),
    "no_token": (
        "Only this machine may read these pages",
        "Open them in a browser on the machine of the server, or start the server with a token in the environment "
        "variable MOOT_TOKEN.",
    ),
    "host": (
        "This address has another name",
        "Open the pages by the address that the terminal of the server shows, such as http://127.0.0.1:8001/.",
    ),
    "origin": ("Another site asked for this page", "Open its address in a tab of its own."),
}
"""Heading and advice by the code of an error."""


@lru_cache(maxsize=8)
def _entry_page(code: str, message: str) -> Page:
    """Made once: anyone who reaches the port may ask for it."""
    heading, advice = _ENTRY[code]
    return make_page("moot view", [Heading(heading, 1), Note(visible_line(message), "warning"), Note(advice)], {})


def _is_navigation(request: Request) -> bool:
    """Whether a person opens a page, and no script or program asks for data."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


def _root(request: Request) -> str:
    """Address of the list of runs, relative to that of the request, whose names may hold encoded slashes."""
    path: bytes = request.scope.get("raw_path", b"/").partition(b"?")[0]
    return "../" * (path.count(b"/") - 1) or "./"


def _blocks(request: Request, error: HTTPException) -> list[Block]:
    run: Path | None = request.scope.get("state", {}).get("run")
    is_unreadable = isinstance(error, RequestError) and error.code == UNREADABLE
    heading = "Nothing is here" if error.status_code == 404 else "This cannot be shown"
    if is_unreadable:
        heading = "The record of this run cannot be read"
    return [Heading(heading, 1), Note(visible_line(str(error.detail)), "warning"), Note(_advice(error, run))]


def _advice(error: HTTPException, run: Path | None) -> str:
    if run is not None and isinstance(error, RequestError) and error.code == UNREADABLE:
        command = f"moot verify {shell_path(run)}"
        return f"{command} lists what is damaged; with --salvage it keeps what is intact. Other runs are not affected."
    if error.status_code == 404:
        return "It may have been moved, renamed or removed since the link was made. The list names every run."
    if isinstance(error, RequestError) and error.code == NOT_COMPARABLE:
        return "Only runs that share cases can be compared: go back to the list of runs, and choose others."
    if error.status_code in _PASSING:
        return "Reload the page in a while."
    if error.status_code >= 500:
        return "The terminal of the server may say more."
    return "Go back to the list of runs."
