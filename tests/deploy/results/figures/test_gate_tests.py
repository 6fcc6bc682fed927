"""Tests that a gate could not make: the case is debated, and the reason is counted, shown and warned of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from gated_cases import gate
from openai_server import completion, serving_in_thread
from planted_records import PlantedSession

import moot
from moot.actors.models.openai_wire import REQUEST_ID_HEADER
from moot.actors.models.probe_calls import STEP_KEY
from moot.deploy.results.figures.gate import UntestedGates, run_warnings, untested_gates
from moot.deploy.results.figures.summary import summarise, summary_blocks
from moot.deploy.results.report.render import report_markdown

M, P = "misalignment", "low_intrinsic"


def plant(session: PlantedSession, *gates: dict[str, Any]) -> Path:
    for number, data in enumerate(gates):
        session.case(f"c{number}")
        session.reply(f"c{number}", "opening/agent/0", 10, p_reason="no alternatives listed")
        session.event(f"c{number}", "gate", "gate", data)
        session.verdict(f"c{number}", how="skipped" if data["skip"] else "t_max", rounds=0 if data["skip"] else 1)
    return session.plant()


@pytest.mark.parametrize(
    ("gates", "found", "warns"),
    [
        ([gate(), gate()], None, False),
        ([gate(), gate(m=None, skip=False, untested=[M])], {"tests": {M: 1}, "untested": 1, "skipped": 0}, True),
        # An older gate ignored these tests; so does a gate that is told to.
        ([gate(m=None, p=None, untested=[M, P])] * 2, {"tests": {M: 2, P: 2}, "untested": 2, "skipped": 2}, True),
        (
            [gate(m=None, untested=[M], intrinsic_reading="none")],
            {"tests": {M: 1}, "untested": 1, "skipped": 1, "intended": True},
            False,
        ),
    ],
)
def test_tests_that_were_not_made_are_counted(
    session: PlantedSession, gates: list[dict[str, Any]], found: dict[str, Any] | None, warns: bool
) -> None:
    run = plant(session, *gates)
    reason: dict[str, Any] = {"cases": len(gates), "intended": False, "reason": "no alternatives listed"}
    assert untested_gates(run) == (None if found is None else UntestedGates(**(reason | found)))
    assert any("gate" in line for line in run_warnings(run)) is warns
    assert ("gate tests not made" in report_markdown(summary_blocks(summarise(run)))) is (found is not None)


NAN = float("nan")


@pytest.mark.parametrize(
    ("logprob", "settings", "skipped", "reason"),
    [
        (NAN, {}, False, "misalignment_unknown"),
        (float("inf"), {}, False, "misalignment_unknown"),
        (None, {}, False, "misalignment_unknown"),
        (2.5, {}, False, "misalignment_unknown"),
        (-9999.0, {}, False, "misalignment_unknown"),
        (NAN, {"gate.if_untested": "ignore"}, True, "known_tests_passed"),
        (NAN, {"gate.intrinsic": "none"}, True, "known_tests_passed"),
        (-0.1, {}, True, "all_tests_passed"),
    ],
)
def test_unusable_log_probabilities_skip_no_debate(
    tmp_path: Path, logprob: float | None, settings: dict[str, Any], skipped: bool, reason: str
) -> None:
    async def answer(request: web.Request) -> web.Response:
        body = json.loads(await request.read() or b"{}")
        is_trial = request.headers.get(REQUEST_ID_HEADER) == STEP_KEY
        text = '{"answer": "Yes", "reasoning": "It is so.", "confidence": 0.9, "support": "supported", "score": 0.9}'
        told = -0.1 if is_trial else logprob
        pieces = ('{"answer": "', "Yes", text.removeprefix('{"answer": "Yes'))
        listed = [
            {"token": piece, "logprob": told, "top_logprobs": [{"token": piece, "logprob": told}]} for piece in pieces
        ]
        for token in listed if told == -0.1 else ():
            token["top_logprobs"] += [{"token": "No", "logprob": -2.5}]  # type: ignore[operator]
        more = {"logprobs": {"content": listed}} if body.get("logprobs") else {}
        return web.Response(text=json.dumps(completion(text, **more)), content_type="application/json")

    with serving_in_thread(answer) as port:
        done = moot.run(
            model=f"http://127.0.0.1:{port}/v1#m", protocol="selene", limit=1, engine="inline", out=tmp_path / "run",
            set={"judging.method": "none", **settings},
        )  # fmt: skip
    (event,) = (json.loads(row["data"]) for row in done.table("events").to_pylist() if row["kind"] == "gate")
    assert (event["skip"], event["reasons"][0]) == (skipped, reason)
    made = reason == "all_tests_passed"
    assert (event["untested"] == []) is made
    warned = any("gate" in line for line in done.summary.warnings)
    assert warned is not (made or settings.get("gate.intrinsic") == "none")
