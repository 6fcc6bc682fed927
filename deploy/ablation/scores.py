"""A cell's cases in numbers: how good the verdict's distribution is, and what the debate was like."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from moot.actors.record.tables import read_table
from moot.deploy.ablation.cases import CellCases
from moot.deploy.ablation.means import Scores
from moot.deploy.reading.record import Noted, decoded, read_events
from moot.deploy.reading.rounds.over_cases import latest_attempts
from moot.deploy.reading.summaries.consensus import hold_against
from moot.deploy.reading.text import known_number

VOTES = "shares of votes"
"""Why a verdict's distribution has no Brier score: nobody stated it."""

_DIGITS = 12
"""Of a score: the rounding of shares must not make a difference between two cells."""


def brier_scores(folder: str | Path, cell: CellCases) -> tuple[Scores, Mapping[str, int]]:
    """The multi-class Brier score of each case that has one, and how many verdicts have none.

    Returns:
        The second by reason: see `moot.deploy.reading.summaries.consensus`, `failed`, `shares of votes`, which nobody
        stated as probabilities and no judging moves, and `trained on`, for claims that the run's classifier knows.

    Raises:
        RecordError: the record cannot be read.
    """
    rows = read_table(folder, "verdicts", ["distribution", "payload"]).to_pylist()
    said = {(row["case_id"], row["attempt"]): row for row in rows}
    scores, left_out = {}, Counter[str]()
    for case_id, verdict in sorted(cell.verdicts.items()):
        row = said[verdict.key]
        if verdict.failed:
            left_out["failed"] += 1
            continue
        if decoded(row["payload"]).get("distribution_from") == "votes":
            left_out[VOTES] += 1
            continue
        held = hold_against(decoded(row["distribution"]), cell.labels.get(case_id, ()), verdict.gold)
        if isinstance(held, str):
            left_out[held] += 1
        elif case_id in cell.trained_on:
            left_out["trained on"] += 1
        else:
            scores[case_id] = round(held.brier, _DIGITS)
    return scores, dict(sorted(left_out.items()))


MEASURES = {
    "agreement_words": "agreement language of the rounds, 0 to 1",
    "closing_agreement_words": "agreement language of the closing statements, 0 to 1",
    "gamma": "Gamma, the CRIT score of both sides, 0 to 1",
    "conceded": "sides that concede in a round, of 2",
    "words": "words of both sides in a round",
}
"""What is looked at in debates, in words; see `moot.protocols.agreement_language` for the first two.

A setting such as contentiousness acts on how sides argue, whether or not that changes an answer (SocraSynth, Study 3).
"""


def debate_scores(folder: str | Path) -> dict[str, Scores]:
    """By key of `MEASURES` the mean of each case's rounds, of its latest attempt; without keys that no round holds.

    Raises:
        RecordError: the record cannot be read.
    """
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for event in latest_attempts(read_events(folder, ("round", "closing"))):
        for key, value in _measured(event).items():
            if value is not None:
                values[key][event.case_id].append(value)
    return {
        key: {case_id: fmean(of_case) for case_id, of_case in sorted(values[key].items())}
        for key in MEASURES
        if key in values
    }


def _measured(event: Noted) -> dict[str, float | None]:
    data = event.data
    words = known_number(data.get("agreement_words"))
    if event.kind == "closing":
        return {"closing_agreement_words": words}
    conceded = data.get("conceded")
    return {
        "agreement_words": words,
        "gamma": known_number(data.get("gamma")),
        "conceded": float(len(conceded)) if isinstance(conceded, list) else None,
        "words": known_number(data.get("words")),
    }
