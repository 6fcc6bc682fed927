"""Stage actor: owns the open run of a stage, and returns the results of batches of rows."""

from __future__ import annotations

import asyncio
import contextvars
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import ray
import structlog

from moot.actors.dispatch.case_router import DebateCancelled, RunFailed
from moot.actors.telemetry.log import configure_json
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.ray_data.column_mapping import ID
from moot.deploy.runs.ray_data.row_ids import BatchKey, RowIds
from moot.deploy.runs.ray_data.row_kinds import RowKind, rejected_row
from moot.deploy.runs.ray_data.stage_client import CLOSED
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.task import content_case_id
from moot.protocols.case import LabelledCase
from moot.protocols.errors import ConfigError, RunFolderBusy, UserError

_log = structlog.get_logger(__name__)
INTERRUPTED = "not_held"
"""Failure of a row whose debate was interrupted: a budget is exhausted, or the stage was closed. The next execution of
the pipeline resumes the debate."""

CONTROL = "control"
"""Concurrency group of calls that must not queue behind batches."""

_OWNER_TIMEOUT_S = 30.0
"""Seconds to wait for the folder while actors of a killed pipeline still own it."""

_POLL_S = 0.25


class StageActor:
    """Actor that owns the run of one stage. If it dies, Ray restarts it and retries the calls in flight; the run
    resumes from its record.

    Args:
        config: the run's configuration as JSON; its `out` is absolute.
        protocol: a user's own protocol object instead of the configured one.
        kind: the kind of rows.
        folder: the driver's working folder, the base of relative paths in the configuration.
    """

    def __init__(self, config: str, protocol: object | None, kind: RowKind, folder: str) -> None:
        os.chdir(folder)
        configure_json("warning")
        self._config, self._protocol, self._kind = config, protocol, kind
        self._numbering = RowIds()
        self._opening = asyncio.Lock()
        self._run: OpenRun | None = None
        self._users = 0
        self._exhausted: tuple[str, str] | None = None
        self._closed = False
        self._closing: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: Counter[str] = Counter()

    async def debate(self, key: BatchKey, raw: bytes) -> bytes:
        """Process a batch and wait for all results; a cancellation cancels the debates without other waiters.

        Idempotent: a retried call gets finished results from the record, so Ray may retry it.

        Args:
            key: the batch's key; a retried batch has the same one.
            raw: rows as plain data, encoded by MessagePack.

        Returns:
            The rows of results in the same order, encoded by MessagePack.

        Raises:
            UserError: the run cannot be opened, or the stage is closed.
            ActorGone: the engine failed.
        """
        self._loop = asyncio.get_running_loop()
        run = await self._acquire_run(key[0])
        try:
            rows: list[dict[str, Any]] = msgspec.msgpack.decode(raw)
            cases = self._with_ids(key, await asyncio.to_thread(self._cases, rows))
            return msgspec.msgpack.encode(await self._await_results(run, cases))
        finally:
            if run is not None:
                await self._leave_batch(run, key[0])

    async def _await_results(
        self, run: OpenRun | None, cases: Sequence[LabelledCase | UserError]
    ) -> list[dict[str, Any]]:
        abandoned: list[str] = []
        try:
            results = await asyncio.gather(
                *(self._await_result(run, case, abandoned) for case in cases), return_exceptions=True
            )
        except asyncio.CancelledError:
            if run is not None:
                await asyncio.gather(*(run.cancel(case_id) for case_id in abandoned), return_exceptions=True)
            raise
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    @ray.method(concurrency_group=CONTROL)  # type: ignore[untyped-decorator]
    async def pending(self) -> int:
        """Number of debates that batches wait for."""
        return len(self._waiters)

    @ray.method(concurrency_group=CONTROL)  # type: ignore[untyped-decorator]
    async def close(self, drain_s: float) -> None:
        """Close the stage: refuse new batches, drain debates for `drain_s` seconds, then flush the record.

        Ray calls this method in the event loop of its concurrency group, but the run belongs to the loop of the
        batches. `debate` stores its loop before it checks whether the stage is closed: if no loop is stored, no run
        exists or will be opened.
        """
        self._closed = True
        if self._loop is not None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._close(drain_s), self._loop))

    async def _close(self, drain_s: float) -> None:
        async with self._opening:
            run, self._run = self._run, None
            if run is not None:
                await run.close(drain_s=drain_s)

    async def _acquire_run(self, execution: str) -> OpenRun | None:
        """Acquire the run for a batch, and open it if necessary; None if this execution has exhausted its budget."""
        async with self._opening:
            if self._closed:
                raise ConfigError(CLOSED)
            if self._exhausted is not None and self._exhausted[0] == execution:
                return None
            if self._run is None:
                # Ray cancels a batch together with the calls in its context, but the run must outlive the batch.
                self._run = await asyncio.create_task(self._open(), context=contextvars.Context())
            self._users += 1
            return self._run

    async def _leave_batch(self, run: OpenRun, execution: str) -> None:
        """Release the run after a batch. A stopped run is closed after its last batch, which frees its folder for a
        stage with a larger budget; another batch reopens it, unless its execution has exhausted the budget. Cancelling
        this call does not cancel the closing."""
        self._users -= 1
        closing = asyncio.create_task(self._close_if_over(run, execution))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)

    async def _close_if_over(self, run: OpenRun, execution: str) -> None:
        async with self._opening:
            if self._users or run is not self._run or not run.refusal:
                return
            if run.broken is None and not run.can_reopen:
                self._exhausted = (execution, run.refusal)
            self._run = None
            try:
                await run.close()
            except Exception as error:  # the journal is durable
                _log.warning("a stopped run was not closed in order", error=repr(error))

    async def _open(self) -> OpenRun:
        deadline = time.monotonic() + _OWNER_TIMEOUT_S
        while True:
            config = RunConfig.model_validate_json(self._config)
            run = await asyncio.to_thread(OpenRun, config, protocol=self._protocol, followed=False)
            try:
                await run.open()
                return run
            except RunFolderBusy:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(_POLL_S)

    def _cases(self, rows: Sequence[Mapping[str, Any]]) -> list[LabelledCase | UserError]:
        """Cases of rows, with an empty id where a row has none; for an invalid row its error."""
        cases: list[LabelledCase | UserError] = []
        for row in rows:
            try:
                labelled = self._kind.case(row)
            except UserError as error:
                cases.append(error)
                continue
            if ID not in row:
                labelled = msgspec.structs.replace(labelled, case=msgspec.structs.replace(labelled.case, id=""))
            cases.append(labelled)
        return cases

    def _with_ids(self, key: BatchKey, cases: list[LabelledCase | UserError]) -> list[LabelledCase | UserError]:
        """The cases, with content-based ids where they have none."""
        unnamed = [i for i, case in enumerate(cases) if isinstance(case, LabelledCase) and not case.case.id]
        hashes = [content_case_id(each.case) for i in unnamed if isinstance(each := cases[i], LabelledCase)]
        for i, case_id in zip(unnamed, self._numbering.assign(key, hashes), strict=True):
            labelled = cases[i]
            assert isinstance(labelled, LabelledCase)
            case = msgspec.structs.replace(labelled.case, id=case_id)
            cases[i] = msgspec.structs.replace(labelled, case=case)
        return cases

    async def _await_result(
        self, run: OpenRun | None, case: LabelledCase | UserError, abandoned: list[str]
    ) -> dict[str, Any]:
        if not isinstance(case, LabelledCase):
            return rejected_row(case)
        case_id = case.case.id
        if run is None:
            return {"case_id": case_id, "failure": INTERRUPTED, "error": self._exhausted[1] if self._exhausted else ""}
        self._waiters[case_id] += 1
        try:
            return self._kind.result_row(await run.run_case(case))
        except UserError as error:
            if self._closed:  # after the batch was accepted
                return {"case_id": case_id, "failure": INTERRUPTED, "error": CLOSED}
            return {"case_id": case_id, **rejected_row(error)}
        except RunFailed:
            raise
        except DebateCancelled as error:
            return {"case_id": case_id, "failure": INTERRUPTED, "error": str(error)}
        except asyncio.CancelledError:
            if self._waiters[case_id] == 1:
                abandoned.append(case_id)
            raise
        finally:
            self._waiters[case_id] -= 1
            if not self._waiters[case_id]:
                del self._waiters[case_id]
