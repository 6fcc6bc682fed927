"""Planted replies with judges' scores."""

from __future__ import annotations

from typing import Any

from planted_records import PlantedSession


def _assessment(quality: int) -> dict[str, Any]:
    scores = {"x": quality}
    mark = {"judge": "judge/0", "model": "m", "pass": 0, "scores": scores, "flag": False, "total": quality}
    told = {"reply": "a", "role": "constructor", "domain": "d", "rubric": "r", "judges": [mark], "missing": 0}
    return told | {"scores": scores, "flag": 0.0, "quality": quality}


def _judged(session: PlantedSession, case: str, number: int, attempt: int = 0) -> None:
    tokens = {"token": ["t"] * 4, "logprob": [-0.1 * number, -0.5, -1.0, -2.0]}
    session.reply(case, "a", 5, attempt=attempt, temperature=0.3, **tokens)
    session.event(case, "assessment", "assessment/a", _assessment(3 + number % 7), attempt=attempt)
