"""Runs that stop by themselves, by tokens, money or time: previous usage counts, the same command resumes."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from openai_server import simulated_server
from small_runs import stable_rows
from structlog.testing import capture_logs

from moot.actors.agent.roles import RoleBinding
from moot.actors.debate.inline_engine import InlineRuntime
from moot.actors.debate.run_spec import RunSpec
from moot.actors.limits.budget_account import BudgetAccount
from moot.actors.limits.ledger import Ledger
from moot.actors.limits.settings import EndpointLimits
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.prices import price_table
from moot.actors.record.folder import RunFolder
from moot.actors.record.progress import Counts
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.sealed_yaml import seal_yaml
from moot.actors.simulated.answer_key import AnswerKey
from moot.deploy.runs.budget_capacity import affordable_debates
from moot.deploy.runs.limits import endpoint_limits, known_prices, spent_by_earlier_sessions
from moot.deploy.runs.listener import Listener
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.resume import _closed, used
from moot.deploy.runs.run import arun, run
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.session import Session
from moot.protocols.errors import ConfigError
from moot.protocols.tasks import open_task

ON_RAY = [pytest.mark.slow, pytest.mark.ray]
ENGINES = [
    pytest.param({"engine": "inline"}, id="inline"),
    pytest.param({"engine": "ray", "placement": "actors"}, id="actors", marks=ON_RAY),
]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_stops_before_it_uses_more_tokens_and_resumes_with_more(tmp_path: Path, engine: dict[str, Any]) -> None:
    common = {"task": "sample", "limit": 12, "seed": 3, "max_open": 4}
    whole = run(out=tmp_path / "whole", engine="inline", **common)  # type: ignore[arg-type]
    used = whole.summary.tokens_paid
    assert used is not None
    cap = used // 2
    stopped = run(out=tmp_path / "run", max_tokens=cap, **common, **engine)  # type: ignore[arg-type]
    assert (stopped.status, stopped.exit_code) == ("stopped", 4)
    assert f"--max-tokens {cap}" in stopped.stopped_by
    assert stopped.summary.stopped_by == stopped.stopped_by
    assert 0 < (stopped.summary.tokens_paid or 0) <= cap
    assert stopped.left == 12 - stopped.done > 0
    if engine["engine"] == "inline":
        again = run(out=tmp_path / "run", max_tokens=cap, **common, **engine)  # type: ignore[arg-type]
        assert again.status == "stopped"
        assert (again.summary.tokens_paid or 0) <= cap, "what earlier sessions used counts"
    done = run(out=tmp_path / "run", engine="inline", **common)  # type: ignore[arg-type]
    sessions = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())["sessions"]
    assert not any("unsettled" in session for session in sessions), "all was told before they ended"
    assert (done.status, done.exit_code, done.left) == ("finished", 0, 0)
    assert (done.summary.tokens_paid, done.summary.tokens_repaid) == (used, 0)
    for table in ("verdicts", "turns", "tokens", "judgments"):
        assert stable_rows(tmp_path / "whole", table) == stable_rows(tmp_path / "run", table)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_budget_finishes_the_debates_that_it_covers(tmp_path: Path, engine: dict[str, Any]) -> None:
    """And does not spend itself on the beginnings of all of them."""
    common: dict[str, Any] = {"task": "sample", "limit": 40, "protocol": "always-debate"}
    whole = run(out=tmp_path / "whole", engine="inline", **common)
    used = Counter[str]()
    for row in whole.table("turns").to_pylist():
        used[row["case_id"]] += row["prompt_tokens"] + row["completion_tokens"]
    first = [used[case_id] for case_id in sorted(used)][:6]
    stopped = run(out=tmp_path / "run", max_tokens=sum(first[:5]) + max(first) // 2, **common, **engine)
    assert stopped.status == "stopped"
    assert stopped.done in (4, 5, 6)
    assert 1 <= stopped.under_way <= 2
    assert stopped.left == 40 - stopped.done


async def test_a_run_that_is_interrupted_early_has_whole_debates(tmp_path: Path) -> None:
    """The calls of the oldest debates start first, so that not every debate is under way and none has ended."""

    class Interrupted(Listener):
        def counts(self, counts: Counts) -> None:
            if counts.paid.calls >= 60:
                session.stop()

    with simulated_server(None, latency_ms=5.0) as port:
        options = {"protocol": "always-debate", "engine": "inline", "concurrency": 5, "limit": 40}
        options |= {"model": f"http://127.0.0.1:{port}/v1#simulated", "out": str(tmp_path / "run")}
        session = Session(prepare(RunConfig.build(None, options)), Interrupted())
        done = await session.run()
    assert done.status == "interrupted"
    assert done.done >= 2
    assert 0 < done.under_way < 40 - done.done


def test_a_bound_that_covers_everything_keeps_nothing_closed(tmp_path: Path) -> None:
    prepared = prepare(RunConfig(task="sample", protocol="always-debate", max_tokens=100_000_000, out=str(tmp_path)))
    covered = affordable_debates(prepared, {"tokens": 0.0})
    assert covered is not None
    assert covered.most_open > 3 * prepared.config.max_open
    spent = affordable_debates(prepared, {"tokens": 100_000_000.0})
    assert spent is not None
    assert spent.most_open == 1
    assert affordable_debates(prepare(RunConfig(out=str(tmp_path))), {}) is None


def test_hidden_reasoning_counts_in_what_a_debate_may_use(tmp_path: Path) -> None:
    prepared = prepare(RunConfig(task="sample", protocol="always-debate", max_tokens=1_000_000, out=str(tmp_path)))
    thinks = ModelProfile(schemas="free", reasons=True)
    bindings = {
        family: [member.model_copy(update={"profile": thinks}) for member in members]
        for family, members in prepared.bindings.items()
    }
    plain, thinking = (affordable_debates(each, {}) for each in (prepared, replace(prepared, bindings=bindings)))
    assert plain is not None
    assert thinking is not None
    assert thinking.most_open < plain.most_open / 2


def numbers_in(text: str) -> list[int]:
    return [int(each.replace(",", "")) for each in re.findall(r"[\d,]*\d\b", text)]


def test_a_stop_says_what_the_next_call_wanted_and_with_what_to_raise_the_bound(tmp_path: Path) -> None:
    common: dict[str, Any] = {"out": tmp_path / "run", "protocol": "single-agent", "engine": "inline", "max_open": 1}
    cap = 3000
    stopped = run(**common, max_tokens=cap)
    _, needed, left, rest, cases, finished, more = numbers_in(stopped.stopped_by)
    paid = stopped.summary.tokens_paid or 0
    assert (left, needed - left) == (cap - paid, more)
    assert (cases, finished) == (stopped.left, stopped.done)
    assert rest >= needed - left + math.ceil(cases * paid / finished)
    assert (run(**common, max_tokens=cap + more - 1).summary.tokens_paid or 0) == paid
    assert (run(**common, max_tokens=cap + more).summary.tokens_paid or 0) > paid


@pytest.mark.parametrize("protocol", ["selene", "always-debate"])
def test_the_bound_raised_as_advised_is_enough_for_the_rest(protocol: str, tmp_path: Path) -> None:
    """Also where the first cases to finish are the short ones."""
    common: dict[str, Any] = {"out": tmp_path / "run", "protocol": protocol, "engine": "inline", "max_open": 4}
    stopped = run(**common, max_tokens=30_000)
    _, _, _, rest, *_ = numbers_in(stopped.stopped_by)
    assert run(**common, max_tokens=30_000 + rest).status == "finished"


def test_money_is_counted_with_the_users_prices_and_bounded(tmp_path: Path) -> None:
    key = AnswerKey.from_cases(open_task("sample").cases())
    with simulated_server(key, seed=0) as port:
        model = f"http://127.0.0.1:{port}/v1#simulated"
        prices = tmp_path / "prices.yaml"
        prices.write_text(yaml.safe_dump({"models": {model: {"input": 1.0, "output": 4.0}}}))
        options: dict[str, Any] = {"model": model, "limit": 6, "engine": "inline", "prices": prices, "max_open": 3}
        whole = run(out=tmp_path / "whole", **options)
        rows = whole.table("turns").to_pylist()
        cost = sum(row["prompt_tokens"] * 1e-6 + row["completion_tokens"] * 4e-6 for row in rows)
        assert whole.summary.cost_usd == pytest.approx(cost)
        stopped = run(out=tmp_path / "run", max_cost_usd=cost / 2, **options)
    assert stopped.exit_code == 4
    assert re.search(r"^--max-cost .* may cost \$0\.0.*, \$0\.0.* left", stopped.stopped_by)
    assert 0.0 < (stopped.summary.cost_usd or 0.0) <= cost / 2


def test_a_bound_on_money_with_an_unknown_price_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"127.0.0.1:1/v1#m.*--prices"):
        run(model="http://127.0.0.1:1/v1#m", max_cost_usd=1.0, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert prepare(RunConfig(max_cost_usd=0)).config.max_cost_usd == 0, "for models that cost nothing"


def test_a_price_that_is_not_known_is_unknown_and_not_zero(tmp_path: Path) -> None:
    with simulated_server(None) as port:
        done = run(model=f"http://127.0.0.1:{port}/v1#m", limit=1, engine="inline", out=tmp_path / "run")
    assert done.summary.cost_usd is None


def test_a_dated_snapshot_costs_what_its_model_does() -> None:
    table = price_table()
    assert table.price("openai/gpt-4o-2024-08-06") == table.price("openai/gpt-4o") is not None
    assert table.price("openai/gpt-4o-audio") is None
    assert table.price("simulated?competence=0.9") is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("models: {a: {input: -1, output: 1}}", r"`models\.a\.input`: .* 0"),
        ("models: [", "YAML"),
        ("model: {}", "'model': did you mean 'models'"),
        ("models: {a: {inptu: 1, output: 1}}", r"`models\.a`: .*'inptu': did you mean 'input'"),
        ("models:", "`models`: "),
        ("just words", "`models:`"),
        ("1: {}", "`1`: "),
    ],
)
def test_a_wrong_file_of_prices_is_one_line(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=expected) as caught:
        price_table(str(file))
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "``" not in str(caught.value)


def test_time_stops_a_run(tmp_path: Path) -> None:
    with simulated_server(None, latency_ms=200.0) as port:
        stopped = run(
            model=f"http://127.0.0.1:{port}/v1#m", engine="inline", out=tmp_path / "run", max_minutes=0.005, max_open=2
        )
    assert (stopped.status, stopped.exit_code) == ("stopped", 4)
    assert stopped.stopped_by == "--max-minutes 0.005 is over"


def test_limits_are_the_models_own_or_those_for_all() -> None:
    members = [RoleBinding(model="openai/a"), RoleBinding(model="openai/b", api_key_env="OTHER")]
    config = RunConfig.build({"requests_per_min": 60, "limits": {"openai/b": {"concurrency": 3}}})
    assert endpoint_limits(config, members) == {
        "openai/a": EndpointLimits(requests_per_min=60),
        "openai/b  OTHER": EndpointLimits(requests_per_min=60, concurrency=3),
    }
    wrong = RunConfig.build({"limits": {"openai/c": {"concurrency": 3}}})
    with pytest.raises(ConfigError, match="openai/c"):
        endpoint_limits(wrong, members)


async def test_a_session_knows_whether_there_was_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[RunSpec] = []

    class Unstartable(InlineRuntime):
        def __init__(self, spec: RunSpec, protocol: Any) -> None:
            specs.append(spec)
            raise ConfigError("far enough")

    options: dict[str, Any] = {"out": str(tmp_path / "run"), "limit": 3, "engine": "inline", "requests_per_min": 600}
    await arun(**options)
    monkeypatch.setattr("moot.actors.debate.inline_engine.InlineRuntime", Unstartable)
    with pytest.raises(ConfigError, match="far enough"):
        await arun(**{**options, "limit": 4})
    with pytest.raises(ConfigError, match="far enough"):
        await arun(**{**options, "out": str(tmp_path / "new")})
    assert [spec.resumed for spec in specs] == [True, False]


def test_what_a_killed_session_had_reserved_counts_as_spent(tmp_path: Path) -> None:
    prices = known_prices(RunConfig(), [RoleBinding(model="simulated")])
    folder = RunFolder(tmp_path)
    earlier = {"epoch": 1, "status": "killed", "unsettled": {"usd": 1.5}}
    account = BudgetAccount(10.0, spent=1.5)
    account.settle("a", reserved=0.5, spent=3.0)
    ledger = Ledger(RunFolder(tmp_path), epoch=2)
    ledger.write(ledger.entry({"usd": account, "tokens": BudgetAccount(100.0)}))
    killed = _closed({"epoch": 2, "status": "running"}, folder, prices, [earlier])
    assert (killed["status"], killed["unsettled"]) == ("killed", {"usd": 3.5}), "all that the record does not hold"
    assert spent_by_earlier_sessions(folder, prices, [earlier, killed]) == {"tokens": 0.0, "usd": 5.0}
    died = _closed({"epoch": 2, "status": "finished"}, folder, prices, [earlier])
    assert (died["status"], died["unsettled"]) == ("finished", {"usd": 0.5}), "of an actor that died in it"
    assert "unsettled" not in _closed({"epoch": 1, "status": "finished"}, folder, prices, [])


@pytest.mark.parametrize(
    ("max_tokens", "ledger", "lost"), [(10**6, False, True), (10**6, True, False), (None, False, False)]
)
def test_a_lost_ledger_of_a_killed_session_is_said(
    max_tokens: int | None, ledger: bool, lost: bool, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"task": "sample", "limit": 1, "engine": "inline", "max_tokens": max_tokens}
    folder = RunFolder(run(**options, out=tmp_path / "run").path)
    content = read_run_yaml(folder)
    content["sessions"][-1]["status"] = "running"
    folder.put("run.yaml", seal_yaml(content))
    if not ledger:
        (folder.path / "limits.json").unlink(missing_ok=True)
    with capture_logs() as logs:
        used(prepare(RunConfig(**options, out=str(folder.path))))
    assert any("limits.json is lost" in log["event"] for log in logs) is lost
