"""What judges and panels found, read back: in transcripts of constructor-auditor, and in summaries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from not_none import not_none
from planted_records import CONTROL, EVIL, InlineRun, PlantedSession, Printed

from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.show import show
from moot.deploy.runs.run import run

SCORES = {"instruction_following": 3, "justification_quality": 2}


def mark(judge: str = "judge/0", number: int = 0, **changes: Any) -> dict[str, Any]:
    there = {"scores": SCORES, "flag": False, "total": 5, "issues": "", "reasoning": "So.", "missing": ""}
    return {"judge": judge, "model": "m", "pass": number, **there, **changes}


def missing(judge: str = "judge/1") -> dict[str, Any]:
    return mark(judge, scores=None, flag=None, total=None, reasoning="", missing=f"timeout: {EVIL}")


def assessment(role: str, *marks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    reply = "opening" if role == "constructor" else "challenge"
    told = {"reply": reply, "role": role, "domain": "mathematics", "rubric": "reasoning", "judges": list(marks)}
    found = {"scores": dict(SCORES), "flag": 0.0, "quality": 5.0, "missing": 0}
    return told | found | changes


@pytest.fixture
def debates(session: PlantedSession) -> Path:
    for number, (quality, flag) in enumerate(((5.0, 0.0), (8.0, 0.5), (None, None))):
        case_id = f"c{number}"
        session.case(case_id)
        for path, role in (("opening", "constructor"), ("challenge", "auditor"), ("synthesis", "synthesizer")):
            data = {"text": f"Claim: {path}. {EVIL}"} if path != "synthesis" else {"answer": "Yes", "rationale": "So."}
            session.reply(case_id, path, 9, role=f"{role}/0", data=json.dumps(data))
        judged = [mark(), missing()] if quality is not None else [missing("judge/0"), missing()]
        data = assessment(
            "constructor", *judged, quality=quality, flag=flag, missing=len(judged) - (quality is not None)
        )
        session.event(case_id, "assessment", "assessment/opening", data)
        sheet = json.dumps({**SCORES, "critical_flag": 0, "reasoning": "So."})
        session.reply(case_id, "assessment/opening/judge/0/pass/0", 5, data=sheet)
        flagged = mark(flag=True, total=0, issues=f"Made up. {EVIL}")
        session.event(
            case_id, "assessment", "assessment/challenge", assessment("auditor", flagged, flag=1.0, quality=0.0)
        )
        session.verdict(case_id, "Yes", "synthesis", rounds=1, payload={"domain": "mathematics"})
    return session.plant()


@pytest.mark.parametrize("form", ["text", "md"])
def test_judgments_are_shown_with_the_judged_reply(debates: Path, printed: Printed, form: str) -> None:
    text = printed(show, debates, "c0", form=form, width=200)
    assert not CONTROL.search(text)
    plain = " ".join(text.replace("\\", "").split())
    opening, challenge = (plain.index(f"Claim: {path}.") for path in ("opening", "challenge"))
    assert opening < plain.index("the opening by the constructor") < challenge
    assert challenge < plain.index("the challenge by the auditor") < plain.rindex("Synthesis")
    assert "judge/1, pass 0, is missing: timeout:" in plain


def test_the_summary_counts_by_role_and_leaves_out_what_is_missing(debates: Path, printed: Printed) -> None:
    found = not_none(summarise(debates).reasoning)
    auditor, constructor = found
    assert (constructor.role, constructor.quality, constructor.flagged) == ("constructor", 6.5, 0.5)
    assert (constructor.replies, constructor.judgments, constructor.missing) == (2, 6, 4)
    assert (auditor.role, auditor.quality, auditor.flagged, auditor.missing) == ("auditor", 0.0, 1.0, 0)
    shown = " ".join(printed(show, debates, width=120).split())
    assert "reasoning: auditor Q 0, flagged 100.0 % (n = 3)" in shown
    assert "reasoning: constructor Q 6.5, flagged 50.0 % (n = 2); 4 of 6 judgments missing" in shown


def test_failed_debates_and_other_protocols_do_not_count(session: PlantedSession, inline_run: InlineRun) -> None:
    session.case("c0")
    session.event("c0", "assessment", "assessment/opening", assessment("constructor", mark()))
    session.verdict("c0", None, "failed", failure="refused", error="no")
    assert summarise(session.plant()).reasoning is None
    assert summarise(inline_run()).reasoning is None


def test_a_real_run_agrees_with_its_record(tmp_path: Path) -> None:
    done = run(
        protocol="constructor-auditor", task="sample-essays", engine="inline", limit=4, out=str(tmp_path / "run")
    )
    rows = done.table("events").to_pylist()
    found = [json.loads(row["data"]) for row in rows if row["kind"] == "assessment"]
    qualities = [each["quality"] for each in found if each["role"] == "auditor"]
    assert not_none(done.summary.reasoning)[0].quality == pytest.approx(sum(qualities) / 4)
    assert not_none(done.summary.reasoning)[0].replies == 4


BOTH = {"agent/0": True, "agent/1": True}


def ruled(winner: str | None, consents: Mapping[str, bool | None] | None, **bias: float | None) -> dict[str, Any]:
    joint = None if consents is None else {"proposal": ["x"], "consents": consents}
    return {"winner": winner, "position_bias": bias, "joint": joint, "topics": []}


def test_winners_order_effect_and_consents_are_counted(session: PlantedSession, printed: Printed) -> None:
    for place, payload in enumerate([
        ruled("For", BOTH, a=2.5, b=-0.5),
        ruled("Against", {**BOTH, "agent/1": False}, a=1.0, b=None),
        ruled("Against", {**BOTH, "agent/0": None}, a=1.0),
        ruled(None, None, a=None),
    ]):  # fmt: skip
        session.case(f"c{place}", gold=None)
        session.verdict(f"c{place}", payload["winner"], "plateau", payload=payload)
    session.case("failed", gold=None)
    session.verdict("failed", None, "failed", failure="quorum", error="none")
    folder = session.plant()
    found = not_none(summarise(folder).rulings)
    assert found.winners == {"For": 1, "Against": 2, "Tie": 0, "none": 1}
    assert (found.first_mover_advantage, found.judgings) == (1.0, 4)
    assert found.joint == {"both consent": 1, "reservations": 1, "not known": 1, "no proposal": 1}
    shown = " ".join(printed(show, folder).split())
    assert "verdicts For 1, Against 2, Tie 0, none 1 position bias +1 marks (n = 4)" in shown
    assert "joint proposals both consent 1, reservations 1, not known 1, no proposal 1" in shown


def test_debates_compared_with_an_answer_are_counted_in_all_and_by_topic(
    session: PlantedSession, printed: Printed
) -> None:
    payloads: list[dict[str, Any]] = [
        {"versus": "debate", "versus_topics": ["debate", "debate", "answer"]},
        {"versus": "answer", "versus_topics": ["answer", "tie", None]},
        {"versus": None, "versus_topics": [None]},
        {"versus": "tie"},  # of an earlier version, which compared a debate as a whole
        {},
    ]
    for place, compared in enumerate(payloads):
        session.case(f"c{place}", gold=None)
        session.verdict(f"c{place}", "For", "plateau", payload=ruled("For", BOTH) | compared)
    folder = session.plant()
    found = not_none(summarise(folder).rulings)
    assert found.versus == {"debate": 1, "answer": 1, "tie": 1, "none": 1}
    assert found.versus_topics == {"debate": 2, "answer": 2, "tie": 1, "none": 2}
    shown = " ".join(printed(show, folder).split())
    assert (
        "debate or answer debate 1, answer 1, tie 1, none 1 "
        "debate or answer, by topic debate 2, answer 2, tie 1, none 2" in shown
    )


def test_only_the_latest_attempt_counts(session: PlantedSession) -> None:
    later = session.new()
    for each in (session, later):
        each.case("c0", gold=None)
    session.verdict("c0", None, "failed", failure="quorum", payload=ruled("For", BOTH))
    later.verdict("c0", "Against", "plateau", attempt=1, payload=ruled("Against", BOTH))
    found = not_none(summarise(session.plant(later)).rulings)
    assert found.winners == {"For": 0, "Against": 1, "Tie": 0, "none": 0}
    assert found.first_mover_advantage is None, "no judge in both orders: unknown, not 0"
    assert found.versus is found.versus_topics is None, "nothing was compared"


def test_a_real_run_agrees_with_its_verdicts(tmp_path: Path) -> None:
    done = run(protocol="socrasynth", task="sample-subjects", engine="inline", limit=3, out=str(tmp_path / "run"))
    found = not_none(done.summary.rulings)
    answers = done.table("verdicts").column("answer").to_pylist()
    assert {name: n for name, n in found.winners.items() if n} == {name: answers.count(name) for name in set(answers)}
    assert found.judgings == 3
