"""What the models did: counted by role and template from columns that old records have, warned of, and left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gated_cases import _plant, add_case, gate
from judged_replies import _assessment, _judged
from openai_server import answers, completion, serving_in_thread
from planted_records import PlantedSession

import moot
from moot.actors.record.rows import NO_LOGPROBS, OVERLONG
from moot.deploy.cli.protocol_runs import execute
from moot.deploy.results.figures.gate import run_warnings
from moot.deploy.results.figures.judged_replies import replies_of_runs
from moot.deploy.results.figures.replies import ModelReplies, commonest_failure, model_replies, warnings_of
from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.record import RunRecord
from moot.deploy.studies.calibration.early_stop import calibrate_early_stop
from moot.deploy.studies.calibration.gate import calibrate
from moot.protocols.errors import IGNORES_LIMIT, RAISE_MAX_TOKENS, ConfigError
from moot.protocols.rubrics.events import ReplyAssessed

OUTSIDE = "`answer` is 'perhaps', expected one of: Yes, No"
LOOP = '{"answer": "Yes", "reasoning": "' + "It is so. " * 60


@pytest.fixture
def mixed(session: PlantedSession) -> Path:
    """One of each; the columns that came later are null, as in an old record."""
    session.case("a")

    def reply(path: str, template: str, text: str | None, outcome: str = "ok", **columns: Any) -> None:
        session.reply("a", path, 10, template=template, text=text, outcome=outcome, **columns)

    reply("opening/agent/0", "opening", "{}", finish_reason="stop")
    reply("opening/agent/1", "opening", LOOP, "repaired", finish_reason="length")
    reply("opening/agent/2~1", "opening", "perhaps", "invalid", error=OUTSIDE)
    reply("opening/agent/2", "opening", "{}", "reasked")
    reply("round/agent/0", "revision", "perhaps", "failed", failure="unparsable", error=OUTSIDE)
    reply("round/agent/1", "revision", None, "failed", failure="refused", error="I cannot help with that")
    reply("round/agent/2", "revision", None, "failed", failure="refused", error="HTTP 401: no such key")
    reply("round/agent/3", "revision", None, "failed", failure="content_filter", error="stopped")
    session.verdict("a")
    return session.plant()


def test_replies_are_counted_by_role_and_template(mixed: Path) -> None:
    opening, revision = model_replies(mixed)
    counts = {"asks": 3, "usable": 3, "repaired": 1, "reasked": 1, "replies": 4}
    counts |= {"truncated": 1, "repetitive": 1, "outside_labels": 1}
    assert opening == ModelReplies(role="agent", template="opening", **counts)
    assert revision == ModelReplies(role="agent", template="revision", asks=4, replies=1, refused=2, outside_labels=1)


def test_an_unfinished_retry_counts_in_no_figure(session: PlantedSession) -> None:
    session.case("a")
    session.reply("a", "opening/agent/0", 10, template="t", outcome="failed", failure="refused", error="no")
    session.verdict("a", None, "", failure="refused")
    session.reply("a", "opening/agent/0", 10, template="t", attempt=1)
    session.event("a", "assessment", "assessment/a", _assessment(3), attempt=1)
    folder = session.plant()
    (replies,), summary = model_replies(folder), summarise(folder)
    assert (replies.refused, replies.usable, commonest_failure(folder)[:7]) == (1, 0, "refused")
    assert (summary.failed, summary.asks_failed, summary.judging) == (1, {"refused": 1}, None)
    assert RunRecord(folder).typed_events(ReplyAssessed) != RunRecord(folder).counted_events(ReplyAssessed) == []


def test_what_later_columns_say_is_counted(session: PlantedSession) -> None:
    session.case("a")
    session.reply("a", "x/agent/0", 9, text="{}", reading="prefix", reasoning_tokens=5, template="t")
    session.reply("a", "x/agent/1", 9, text="{}", reading="prefix,reasoning", template="t")
    session.reply("a", "x/agent/2", 9, text="{}", reading="several,letter", template="t")
    session.reply("a", "x/agent/3", 9, text="{}", reading="mended,wrapped", outcome="reasked", template="t")
    session.reply("a", "x/agent/4", 9, text="{}", reading="mended", outcome="repaired", template="t")
    session.verdict("a")
    (found,) = model_replies(session.plant())
    assert (found.by_prefix, found.from_reasoning, found.reasoning_tokens) == (2, 1, 5)
    assert (found.from_several, found.by_letter, found.wrapped, found.repaired, found.reasked) == (1, 1, 1, 2, 1)
    assert any("reasoning parser" in line for line in warnings_of([found]))


@pytest.mark.parametrize(
    ("counts", "remedy"),
    [
        ({"asks": 100, "usable": 100, "replies": 100, "truncated": 5}, None),
        ({"asks": 100, "usable": 100, "replies": 100, "truncated": 6}, "max_tokens"),
        ({"asks": 4, "usable": 0, "replies": 8, "truncated": 8}, "max_tokens"),
        ({"asks": 4, "usable": 0, "replies": 8}, "moot doctor"),
        ({}, None),
    ],
)
def test_what_is_warned_of_comes_with_its_remedy(counts: dict[str, int], remedy: str | None) -> None:
    lines = warnings_of([ModelReplies(role="judge", template="t", **counts)])
    assert len(lines) == (remedy is not None)
    assert all("judge" in line and str(remedy) in line for line in lines)


def test_advice_names_the_models_of_the_role_the_protocol_and_its_settings(session: PlantedSession) -> None:
    session.case("a")
    for path in ("opening/agent/0", "opening/agent/1"):
        session.reply("a", path, 10, outcome="failed", failure="unparsable", reading=NO_LOGPROBS, text="?")
    session.event("a", "gate", "gate", gate(m=None, skip=False, untested=["misalignment"]))
    session.verdict("a")
    members = [{"model": "http://h/v1#a"}, {"model": "openai/b", "api_key_env": "KEY"}]
    run = session.plant(
        schema_version=1, protocol="selene", set={"debate.epsilon": 0.1}, agents=2, bindings={"agent": members}
    )
    unusable, without, untested = run_warnings(run)
    settings = "--protocol selene --set debate.epsilon=0.1 --set agents=2"
    alone = ("`moot doctor --model 'http://h/v1#a'", "`moot doctor --model openai/b --api-key-env KEY")
    assert all(f"{command} {settings}`" in unusable for command in alone)
    assert all(f"{command}`" in line for command in alone for line in (without, untested))


def test_earlier_attempts_do_not_count(session: PlantedSession) -> None:
    session.case("c")
    session.reply("c", "opening/agent/0", 4, outcome="failed", failure="unparsable", finish_reason="length", text="x")
    session.reply("c", "opening/agent/0", 4, attempt=1, text="Yes")
    session.verdict("c", attempt=1)
    (found,) = model_replies(session.plant())
    assert (found.asks, found.usable, found.replies, found.truncated) == (1, 1, 1, 0)


def test_calibrating_leaves_cases_with_truncated_replies_out(session: PlantedSession) -> None:
    for number in range(40):
        add_case(session, number, "Yes", "Yes", gate())
    for row in session.replies[:5] + session.replies[10:12]:  # of the cases 0 and 2
        row["finish_reason"] = "length"
    run = session.plant(protocol="selene", encoder="e")
    found, whole = calibrate(run), calibrate(run, keep_truncated=True)
    assert found.left_out == {"with a truncated reply": 2}
    assert found.n_validation + found.n_held_out == 38
    assert whole.left_out == {}


def test_calibrating_leaves_cases_with_overlong_replies_out_with_another_remedy(session: PlantedSession) -> None:
    for number in range(2):
        add_case(session, number, "Yes", "Yes", gate())
    for row in session.replies:
        row |= {"finish_reason": "length", "reading": OVERLONG}
    with pytest.raises(ConfigError, match=IGNORES_LIMIT) as refused:
        calibrate(session.plant(protocol="selene", encoder="e"))
    assert RAISE_MAX_TOKENS not in str(refused.value)


def test_early_signals_leave_truncated_replies_out(session: PlantedSession) -> None:
    _plant(session, -0.8)
    for row in session.replies[:7]:
        row["finish_reason"] = "length"
    session.replies[0]["reading"] = OVERLONG
    run = session.plant()
    assert calibrate_early_stop(run).left_out == {"truncated": 6, "overlong": 1}
    assert calibrate_early_stop(run, keep_truncated=True).left_out == {}


def test_analysing_leaves_truncated_replies_out(session: PlantedSession) -> None:
    for number in range(3):
        session.case(f"c{number}")
        _judged(session, f"c{number}", number)
        session.verdict(f"c{number}")
    for row, reading in zip(session.replies, (None, OVERLONG), strict=False):
        row |= {"finish_reason": "length", "reading": reading}
    run = session.plant()
    found = replies_of_runs([run])
    assert len(found) == 1
    assert list(found.left_out.values()) == [1, 1]
    assert len(replies_of_runs([run], keep_truncated=True)) == 3


@contextmanager
def server_that_says(text: str, finish: str, **message: Any) -> Iterator[str]:
    """A server on loopback that gives every request the same reply; its URL with a model's name."""
    said = {"role": "assistant", "content": text, **message}
    with serving_in_thread(answers(200, completion(finish_reason=finish, message=said))) as port:
        yield f"http://127.0.0.1:{port}/v1#m"


def _run(model: str, out: Path, **flags: Any) -> int:
    given = {"task": "sample", "protocol": "single-agent", "engine": "inline", "limit": 3}
    return execute(None, {**given, "model": model, "out": str(out), **flags}, quiet=True)


@pytest.mark.parametrize(
    ("text", "finish", "structured", "cure"),
    [
        ('{"answer": "Yes", "reasoning": "It r', "length", None, "--max-reply-tokens"),
        ("I think so", "stop", False, "--structured on"),
        ("I think so", "stop", None, "another model or server"),
    ],
)
def test_the_last_line_of_a_run_is_its_most_frequent_failure(
    text: str, finish: str, structured: bool | None, cure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with server_that_says(text, finish) as model:
        assert _run(model, tmp_path / "run", structured=structured) == 3
    told = capsys.readouterr()
    last = told.err.strip().splitlines()[-1]
    assert cure in last
    assert "3 of 3" in last
    assert "warning: none of the 3 asks of agent" in told.out
    assert commonest_failure(tmp_path / "run") in last


@pytest.mark.parametrize("protocols", ["single-agent", "single-agent,always-debate"])
def test_a_run_without_verdicts_points_at_its_failures(
    protocols: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with server_that_says("I think so", "stop") as model:
        assert _run(model, tmp_path / "run", protocol=protocols) == 3
    told = capsys.readouterr().out.partition("next:")[2].replace("\n      ", "  ")
    pointed = [line for line in told.splitlines() if "sample-001" in line]
    assert ["failed" in line for line in pointed] == [True] * len(protocols.split(","))
    assert "from opening to verdict" not in told


def test_hidden_reasoning_is_recorded_when_asked(tmp_path: Path) -> None:
    reply = '{"answer": "Yes", "reasoning": "It rained.", "confidence": 0.9}'
    kept = []
    with server_that_says(reply, "stop", reasoning_content="Let me see") as model:
        for saved in (False, True):
            options: Any = {"task": "sample", "protocol": "single-agent", "engine": "inline", "limit": 1}
            done = moot.run(**options, model=model, out=tmp_path / str(saved), save_reasoning=saved)
            kept.append(done.table("turns")["reasoning"].to_pylist())
            assert done.commonest_failure == ""
    assert kept == [[None], ["Let me see"]]
