"""Planted cases with the signals of a gate, and streamed replies that may be stopped early."""

from __future__ import annotations

from typing import Any

import numpy as np
from planted_records import PlantedSession

CASES, TOKENS = 150, 24


def gate(d: float | None = 0.1, m: float | None = 0.1, p: float | None = 0.9, **data: Any) -> dict[str, Any]:
    return {
        "skip": True, "reasons": [], "d": d, "m": m, "p": p, "c": 0.8, "tau_d": 0.35, "tau_m": 0.25, "tau_p": 0.6,
        "unanimous": True, "require_unanimity": True, "when": "selective", "intrinsic_reading": "normalised", **data,
    }  # fmt: skip


def add_case(
    session: PlantedSession, i: int, skipped: str, debated: str, signals: dict[str, Any], gold: str | None = "Yes"
) -> None:
    case = f"c{i}"
    session.case(case, gold=gold)
    session.reply(case, "opening/agent/0", 10, logprob_stage="before")
    session.reply(case, "opening/agent/1", 10, logprob_stage="before")
    session.reply(case, "round/1/agent/0", 60)
    session.reply(case, "judge/candidate/0/judge/0/variant/0/pass/0", 20)
    session.reply(case, "judge/consensus/judge/0/variant/0/pass/0", 5)
    session.event(case, "gate", "gate", signals)
    branches = {"verdict_from": "skip", "skipped_answer": skipped, "debated_answer": debated}
    session.event(case, "branches", "branches", branches)
    session.verdict(case, skipped, "skipped")


def _plant(session: PlantedSession, shift: float, seed: int = 0, **columns: Any) -> None:
    """Two replies per case, a third of them wrong; `shift` is added to the log-probabilities of wrong ones."""
    random = np.random.default_rng(seed)
    for number in range(CASES):
        case = f"c{number}"
        session.case(case, gold="Yes")
        of_case = random.normal(0.0, 0.3)
        for agent in range(2):
            wrong = bool(random.random() < 1 / 3)
            logprobs = np.minimum(-0.001, -2.0 + of_case + random.normal(0.0, 0.5, TOKENS))
            logprobs += shift * wrong
            row = {"temperature": 0.7, "answer": "No" if wrong else "Yes", "token": ["x"] * TOKENS}
            session.reply(case, f"opening/agent/{agent}", 30, **{**row, "logprob": logprobs.tolist(), **columns})
        session.verdict(case)
