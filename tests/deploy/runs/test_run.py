"""Runs from Python on the inline engine: from start to end, resumed, refused, streamed."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from assessed_debate import AssessedDebate
from openai_server import completion, serving, simulated_server

import moot
from moot.actors.debate.inline_engine import InlineWriterPool
from moot.actors.models.openai_wire import REQUEST_ID_HEADER
from moot.actors.models.probe_calls import STEP_KEY
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership, RecordOwner
from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.tables import read_table
from moot.deploy.runs import session
from moot.deploy.runs.dry_run import plan
from moot.deploy.runs.listener import Listener
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.run import arun, run, stream
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.session import Session
from moot.deploy.runs.single_debate import debate
from moot.protocols.case import Case, case_slots
from moot.protocols.errors import ConfigError, ModelUnavailable, RunFolderBusy, RunMismatch
from moot.protocols.floor import Floor
from moot.protocols.messages import Form, Verdict
from moot.protocols.replies import Position
from moot.protocols.tasks import open_task
from moot.protocols.templates import Templates

QUESTIONS: list[dict[str, object]] = [
    {"question": f"Is {n} even?", "labels": ["Yes", "No"], "gold": "No" if n % 2 else "Yes", "passage": f"{n} is it."}
    for n in range(6)
]


FEW = 6
"""Cases of the bundled sample; the gate skips some of them."""


def small(out: Path) -> dict[str, Any]:
    return {"task": "sample", "engine": "inline", "out": out, "limit": FEW}


def rows(done: Run, table: str, **where: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done.table(table).to_pylist()
    return [row for row in found if all(row[key] == value for key, value in where.items())]


def test_a_run_and_what_it_leaves(tmp_path: Path) -> None:
    done = run(**small(tmp_path / "run"))
    assert (done.status, done.exit_code, done.done, done.failed, done.left) == ("finished", 0, FEW, 0, 0)
    assert done.summary.cases == FEW
    assert done.summary.simulated is True
    assert done.table("verdicts").num_rows == FEW
    assert len(done.to_pandas("verdicts")) == FEW
    with pytest.raises(ConfigError, match="'verdict': did you mean 'verdicts'"):
        done.table("verdict")
    content = yaml.safe_load((done.path / "run.yaml").read_text())
    assert content["models"] == {"agent": ["simulated"], "judge": ["simulated"]}
    assert content["versions"].keys() >= {"moot", "python", "ray", "pydantic"}
    (session,) = content["sessions"]
    assert (session["epoch"], session["status"]) == (1, "finished")
    left = {path.name for path in done.path.iterdir()}
    assert left >= {"run.yaml", "prompts", "verdicts", "turns", "tokens"}
    assert not list((done.path / "journal").iterdir())
    assert (done.path / "prompts" / "selene" / "opening.j2").read_text().startswith("{#")


@pytest.mark.parametrize(
    "changed", [{}, {"both_branches": True, "gate.intrinsic": "resampled"}, {"audit_skipped": 0.5}]
)
def test_the_calls_made_are_within_the_plan(changed: dict[str, object], tmp_path: Path) -> None:
    options = {**small(tmp_path / "run"), "out": str(tmp_path / "run"), "set": changed}
    found = plan(prepare(RunConfig.build(None, options)))
    assert found.least is not None
    assert found.most is not None
    assert found.least <= run(**options).summary.calls <= found.most


def test_a_larger_limit_resumes_and_keeps_what_is_recorded(tmp_path: Path) -> None:
    first = run(**small(tmp_path / "run"))
    before = {row["reply_id"] for row in rows(first, "turns")}
    early = {row["case_id"] for row in rows(first, "cases")}
    ownership = Ownership.acquire(RunFolder(first.path))
    with pytest.raises(RunFolderBusy):
        run(**{**small(tmp_path / "run"), "limit": 2 * FEW})
    ownership.release()
    second = run(**{**small(tmp_path / "run"), "limit": 2 * FEW})
    turns = rows(second, "turns")
    assert second.done == second.table("verdicts").num_rows == 2 * FEW
    assert {row["reply_id"] for row in turns if row["case_id"] in early} == before
    assert not {row["path"] for row in rows(second, "events", kind="superseded")}
    sessions = yaml.safe_load((second.path / "run.yaml").read_text())["sessions"]
    assert [session["epoch"] for session in sessions] == [1, 3]


def test_a_finished_run_is_not_started_again(tmp_path: Path) -> None:
    first = run(**small(tmp_path / "run"))
    stamp = (first.path / "run.yaml").read_bytes()
    again = run(**{**small(tmp_path / "run"), "engine": "ray"})
    assert (again.worked, again.status, again.done) == (False, "finished", FEW)
    assert (first.path / "run.yaml").read_bytes() == stamp
    assert len(RunFolder(first.path).epochs()) == 1


def test_another_configuration_is_refused_with_what_differs(tmp_path: Path) -> None:
    run(**small(tmp_path / "run"))
    changes = {"seed": 1, "set": {"gate.tau_d": 0.1}, "roles": {"judge": ["simulated", "simulated"]}}
    with pytest.raises(RunMismatch) as refused:
        run(**{**small(tmp_path / "run"), **changes})
    message = str(refused.value)
    assert "seed: was 0, now 1" in message
    assert "gate.tau_d: was 0.35, now 0.1" in message
    assert "roles.judge: was simulated, now simulated, simulated" in message
    assert "--out" in message
    with pytest.raises(RunMismatch, match="task_digest"):
        run(**{**small(tmp_path / "run"), "task": QUESTIONS})
    prompts = tmp_path / "prompts" / "selene"
    prompts.mkdir(parents=True)
    (prompts / "judge.j2").write_text("{% block system %}{% endblock %}{% block user %}Hm?{% endblock %}")
    with pytest.raises(RunMismatch, match="selene/judge"):
        run(**{**small(tmp_path / "run"), "prompts": tmp_path / "prompts"})


@pytest.mark.parametrize(
    ("user", "said"),
    [("{{ rationales }}", "unknown slot 'rationales': did you mean 'rationale'"), ("{% if %}", "line 1")],
)
def test_a_template_that_cannot_work_is_refused_before_anything_is_paid(tmp_path: Path, user: str, said: str) -> None:
    file = tmp_path / "prompts" / "selene" / "judge.j2"
    file.parent.mkdir(parents=True)
    file.write_text("{% block system %}{% endblock %}{% block user %}" + user + "{% endblock %}")
    with pytest.raises(ConfigError) as refused:
        run(**{**small(tmp_path / "run"), "prompts": tmp_path / "prompts"})
    assert said in str(refused.value)
    assert str(file) in str(refused.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": "http://127.0.0.1:9/v1#m"}, ModelUnavailable, "cannot reach http://127.0.0.1:9"),
        ({"model": "openai/some", "roles": {"agent": {"api_key_env": "NOT_SET_ANYWHERE"}}}, moot.UserError, "NOT_SET"),
        ({"model": "simulated?competense=1"}, ConfigError, "did you mean 'competence'"),
        ({"task": [{"question": ""}]}, moot.UserError, "question"),
        ({"set": {"gate.tau_d_encoder": "another"}}, ConfigError, "'another'"),
        ({"colour": "red"}, ConfigError, "unknown key 'colour'"),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_written(
    tmp_path: Path, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refused:
        run(**{**small(tmp_path / "run"), **options})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


async def test_run_waits_inside_a_running_loop(tmp_path: Path) -> None:
    assert run(**small(tmp_path / "run")).done == FEW


async def test_cases_and_protocols_as_objects(tmp_path: Path) -> None:
    class First:
        roles = ()

        async def run(self, case: Case, floor: Floor) -> Verdict:
            return Verdict(answer=(case.labels or ("",))[0], how="first")

    done = await arun(task=QUESTIONS, protocol=First(), engine="inline", out=tmp_path / "first")
    assert [row["correct"] for row in rows(done, "verdicts")] == [True, False] * 3
    given = {"protocol": "single-agent"}
    assert (await arun(given, task=moot.Task.from_cases(QUESTIONS), engine="inline", out=tmp_path / "made")).done == 6


async def test_a_stream_of_events_ends_with_the_run(tmp_path: Path) -> None:
    found = [item async for item in stream(**small(tmp_path / "run"))]
    assert isinstance(found[-1], Run)
    assert [item.replies for item in found if isinstance(item, moot.Signals)][-1:] == [0]  # no reply is judged
    events = [item for item in found if isinstance(item, StreamedEvent)]
    assert {event.kind for event in events} >= {"asked", "gate", "judging"}
    assert len({event.case_id for event in events}) == FEW
    told = [event for event in events if event.kind == "verdict"]
    assert len(told) == FEW  # verdicts are streamed too; the record keeps them in a table of their own
    assert len(events) - len(told) == found[-1].table("events").num_rows


async def test_a_stream_of_judged_replies_gives_their_signals(tmp_path: Path) -> None:
    told = asyncio.Event()

    class Waiting(AssessedDebate):
        """Every other debate ends after the first signals."""

        async def run(self, case: Case, floor: Floor) -> Verdict:
            if case.id.endswith(("1", "3", "5", "7", "9")):
                await told.wait()
            return await super().run(case, floor)

    roles = {"constructor": moot.RoleBinding(top_logprobs=5), "auditor": "simulated"}
    options: dict[str, Any] = {**small(tmp_path / "run"), "protocol": Waiting(), "roles": roles}
    found: list[Any] = []
    async for item in stream(**options):
        found.append(item)
        if isinstance(item, moot.Signals):
            told.set()
    signals = [item for item in found if isinstance(item, moot.Signals)]
    assert isinstance(found[-1], Run)
    assert found[-2] is signals[-1]
    assert {one.kind for one in signals} == {"signals"}
    assert signals[-1].groups() == [(domain, role) for domain in ("even", "odd") for role in ("auditor", "constructor")]
    changed = [one.replies for one in signals[:-1]]
    assert changed == sorted(set(changed))
    assert 0 < changed[0] <= FEW < signals[-1].replies == 2 * FEW
    again = [item async for item in stream(**options)]  # nothing is left to do
    assert [type(item) for item in again] == [moot.Signals, Run]
    assert isinstance(again[0], moot.Signals)
    assert (again[0].replies, again[0].groups()) == (2 * FEW, signals[-1].groups())
    assert str(again[0].correlation("even", "constructor")) == str(signals[-1].correlation("even", "constructor"))
    single = {**small(tmp_path / "unjudged"), "protocol": "single-agent"}
    await arun(**single)
    assert [type(item) async for item in stream(**single)] == [Run]


async def test_a_writer_that_gives_no_events_does_not_keep_a_stream_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(self: InlineWriterPool) -> list[StreamedEvent]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(InlineWriterPool, "events", hang)
    monkeypatch.setattr(session, "_FINAL_POLL_S", 0.1)
    async with asyncio.timeout(30):
        (done,) = [item async for item in stream(**small(tmp_path / "run"))]
    assert isinstance(done, Run)
    assert done.status == "finished"


async def test_leaving_a_stream_early_leaves_a_run_that_resumes(tmp_path: Path) -> None:
    with simulated_server(None, latency_ms=50.0) as port:
        options = {**small(tmp_path / "run"), "model": f"http://127.0.0.1:{port}/v1#simulated", "limit": 12}
        events = stream(**options, max_open=4)
        async for event in events:
            assert isinstance(event, StreamedEvent)
            break
        await events.aclose()  # type: ignore[attr-defined]
        done = await arun(**options)
    assert (done.status, done.table("verdicts").num_rows) == ("finished", 12)
    wanted = [labelled.case.id for labelled in open_task("sample").cases()][:12]
    assert sorted(row["case_id"] for row in rows(done, "verdicts")) == sorted(wanted)


async def test_a_session_that_is_stopped_while_its_engine_starts_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting, taken_down = asyncio.Event(), []

    async def start(self: object) -> None:
        starting.set()
        await asyncio.sleep(60)

    async def stop(self: object, *, compact: bool = True) -> None:
        taken_down.append(compact)

    monkeypatch.setattr("moot.actors.debate.inline_engine.InlineRuntime.start", start)
    monkeypatch.setattr("moot.actors.debate.inline_engine.InlineRuntime.stop", stop)
    session = Session(prepare(moot.RunConfig.build(None, {**small(tmp_path / "run"), "out": str(tmp_path / "run")})))
    holding = asyncio.create_task(session.run())
    await starting.wait()
    session.stop()
    stopped = await asyncio.wait_for(holding, 5)
    assert (stopped.status, stopped.exit_code, stopped.done) == ("interrupted", 130, 0)
    assert taken_down
    assert not (tmp_path / "run").exists()


async def test_one_question(tmp_path: Path) -> None:
    found = await debate("Can penguins fly?", "Penguins swim; they do not fly.")
    assert found.answer in ("Yes", "No")
    assert found.simulated
    assert found.path is None
    assert {turn["role"] for turn in found.turns} >= {"agent/0", "agent/1", "agent/2"}
    kept = await moot.debate("Which one?", labels=("A", "B"), protocol="single-agent", out=tmp_path / "kept")
    assert kept.answer in ("A", "B")
    assert (tmp_path / "kept" / "run.yaml").exists()


def test_a_protocol_that_raises_an_interrupt_fails_its_case_alone(tmp_path: Path) -> None:
    class Interrupting:
        async def run(self, case: Case, floor: Floor) -> Verdict:
            raise KeyboardInterrupt

    done = run(task=QUESTIONS[:2], protocol=Interrupting(), engine="inline", out=tmp_path / "run")
    assert (done.status, done.failed) == ("finished", 2)


async def test_one_question_that_nobody_answers_for_a_person() -> None:
    class AskingTwice:
        async def run(self, case: Case, floor: Floor) -> Verdict:
            turn = await floor.ask("agent/0", "selene/opening", case_slots(case), reply=Position, path="z")
            decision = await floor.consult(Form("Is it so?", case.question, ("Yes", "No")), path="a")
            return Verdict(answer=turn.answer, how=decision.action)

    found = await debate("Can penguins fly?", protocol=AskingTwice())
    assert (found.how, found.failure) == ("go on", "")
    assert [turn["path"] for turn in found.turns] == ["z", "a"]


@pytest.mark.parametrize("name", sorted(Templates().sources))
def test_the_header_of_a_template_declares_what_it_uses(name: str) -> None:
    templates = Templates()
    assert templates._slots(name) <= templates._declared(name)


class _Broken:
    """A server that answers the trial only, until it is mended."""

    broken = True

    async def answer(self, request: web.Request) -> web.Response:
        if self.broken and request.headers.get(REQUEST_ID_HEADER) != STEP_KEY:
            return web.json_response({"error": {"message": "not today"}}, status=400)
        return web.json_response(completion('{"answer": "Yes", "reasoning": "x", "confidence": 0.9}'))


async def test_failed_asks_alone_are_no_failure_of_the_run(tmp_path: Path) -> None:
    async with serving(_Broken().answer) as url:
        agents = ["simulated", "simulated", f"{url}#m"]
        settings = {"gate.intrinsic": "none"}
        done = await arun(**{**small(tmp_path / "run"), "limit": 4}, roles={"agent": agents}, set=settings)
    assert done.summary.asks_failed["request"] >= 4
    assert (done.status, done.done, done.failed, done.exit_code) == ("finished", 4, 0, 0)


async def test_a_case_that_is_tried_again_is_one_case_and_what_failed_before_is_over(tmp_path: Path) -> None:
    class Counted(Listener):
        def began(self, total: int | None, done: int) -> None:
            seen.append((done, total))

        def counts(self, counts: Counts) -> None:
            seen.append((counts.finished + counts.failed, counts.failed))

    seen: list[tuple[int, int | None]] = []
    server = _Broken()

    async def hold(**more: Any) -> Run:
        seen.clear()
        options = small(tmp_path / "run") | {"out": str(tmp_path / "run"), "protocol": "single-agent"}
        return await Session(prepare(RunConfig.build(None, {**options, "model": f"{url}#m", **more})), Counted()).run()

    async with serving(server.answer) as url:
        first = await hold(limit=4)
        assert (seen[0], seen[-1], first.summary.asks_failed) == ((0, 4), (4, 4), {"request": 4})
        server.broken = False
        await hold(limit=4, retry_failed=True)
        assert (seen[0], seen[-1]) == ((0, 4), (4, 0))
        more = await hold(limit=5)
    assert (seen[0], seen[-1]) == ((4, 5), (5, 0))
    assert (more.done, more.failed, more.summary.asks_failed) == (5, 0, {})


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("stopped", [False, True])
async def test_the_record_is_never_read_on_the_event_loop(
    stopped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a bucket run the lease's heartbeat is on it."""
    reads: list[bool] = []

    def watched(*args: Any, **options: Any) -> Any:
        reads.append(_on_a_loop())
        return read_table(*args, **options)

    monkeypatch.setattr("moot.deploy.runs.record_state.read_table", watched)
    config = RunConfig(task="sample", limit=3, engine="inline", out=str(tmp_path / "run"))
    assert (await Session(prepare(config)).run()).done == 3
    more = Session(prepare(config.model_copy(update={"limit": 5})))
    if stopped:
        more.stop()
    assert (await more.run()).done == (3 if stopped else 5)
    assert len(reads) > 4
    assert not any(reads)


async def test_each_table_is_read_once_at_the_start_and_once_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: Counter[str] = Counter()

    def counted(folder: Any, table: str, *args: Any, **options: Any) -> Any:
        reads[table] += 1
        return read_table(folder, table, *args, **options)

    for module in ("record_state", "limits"):
        monkeypatch.setattr(f"moot.deploy.runs.{module}.read_table", counted)

    async def reads_of(status: str, **options: Any) -> dict[str, int]:
        reads.clear()
        assert (await arun(**small(tmp_path / "run") | options)).status == status
        return dict(reads)

    start = {"verdicts": 1, "cases": 1, "turns": 1, "events": 1}
    end = {"verdicts": 1, "cases": 1}
    both = {name: count + end.get(name, 0) for name, count in start.items()}
    assert await reads_of("finished", limit=2) == both
    resumed = {**both, "turns": 2}  # for which roles' replies were usable
    assert await reads_of("finished") == resumed, "what was read to see whether anything is left is not read again"
    assert await reads_of("finished") == end, "nothing is left to do"
    stopped = await reads_of("stopped", limit=12, max_tokens=1)
    assert stopped == {**resumed, "turns": 3, "events": 2}, "which debates are in progress is read once, at the end"


async def test_what_another_owner_has_recorded_meanwhile_is_not_paid_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look whether anything is left and the ownership of the folder."""
    await arun(**{**small(tmp_path / "run"), "limit": 2})
    acquire = RecordOwner.acquire

    async def late(folder: RunFolder) -> RecordOwner:
        monkeypatch.setattr(RecordOwner, "acquire", acquire)
        assert (await arun(**small(tmp_path / "run"))).worked
        return await acquire(folder)

    monkeypatch.setattr(RecordOwner, "acquire", late)
    done = await arun(**small(tmp_path / "run"))
    assert (done.status, done.done, done.left, done.worked) == ("finished", FEW, 0, True)
    events = rows(done, "events", kind="asked")
    assert len({(row["case_id"], row["path"]) for row in events}) == len(events)
