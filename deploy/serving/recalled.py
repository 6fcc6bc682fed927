"""A request that its service does not remember any more: from the record, or from the inbox."""

from __future__ import annotations

import asyncio

from moot.deploy.running.open_run import OpenRun
from moot.deploy.serving.bodies import case_of
from moot.deploy.serving.inbox import Inbox
from moot.deploy.serving.jobs import Job
from moot.deploy.serving.refusals import Refused
from moot.deploy.serving.requests import Asked
from moot.deploy.serving.settings import Kind


async def recalled(kind: Kind, case_id: str, run: OpenRun, inbox: Inbox, model: type[Asked]) -> Job | None:
    """A request that is not being debated; None when it was never accepted.

    Args:
        model: of a request's body.

    Raises:
        NotHeld: the run was closed meanwhile.
        RecordError: the inbox cannot be read.
    """
    job = Job(case_id)
    job.held = await run.recall(case_id)
    if job.held is None and not await inbox.was_cancelled(kind, case_id):
        body = await inbox.accepted(kind, case_id)
        return None if body is None else Job.aside(case_id, await _why_aside(body, run, model))
    job.cancelled = job.held is None
    job.done.set()
    return job


async def _why_aside(body: bytes, run: OpenRun, model: type[Asked]) -> str:
    """Why an accepted request is not gone on with."""
    try:
        await asyncio.to_thread(case_of, body, model, run)
    except Refused as error:
        return str(error.detail)
    return run.refusal or "it goes on when the server is started anew"
