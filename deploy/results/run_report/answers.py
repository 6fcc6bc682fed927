"""Answers of each agent in each round of a debate, and whether they were right."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.record.reply_columns import CodedTexts, Flags, Ints
from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.record.run_record import RunRecord

OPENING = 0
"""The round of the openings."""

_FEWEST_VOTERS = 3

_PATH = re.compile(r"(?:opening|round/(?P<round>\d+))/agent/(?P<agent>\d+)")
_PATTERN = r"^(opening|round/[0-9]+)/agent/[0-9]+$"


class AgentAnswers(NamedTuple):
    """The agents' answers in debates that can be scored, as columns, in order of case, agent and round.

    Attributes:
        cases: ids of the cases.
        case: `(n,)`, the place of each answer's case in them.
        agent: `(n,)`, who gave it.
        round: `(n,)`, when, `OPENING` for a first answer; rounds without a usable answer are missing.
        right: `(n,)`, whether it was right.
        answer: `(n,)`, a number for each distinct answer.
    """

    cases: Sequence[str]
    case: Ints
    agent: Ints
    round: Ints
    right: Flags
    answer: Ints

    def first_of(self, agent: int) -> dict[str, bool]:
        """Whether an agent's first answer was right, by case."""
        rows = (self.agent == agent) & (self.round == OPENING)
        ids = map(self.cases.__getitem__, self.case[rows].tolist())
        return dict(zip(ids, self.right[rows].tolist(), strict=True))


class RoundFlips(FrozenModel):
    """Changes of answers from the previous round.

    Attributes:
        answers: pairs of an agent's answers in both rounds.
        to_right: wrong before, right now.
        to_wrong: right before, wrong now.
    """

    round: int
    answers: int
    to_right: int
    to_wrong: int


def agent_answers(record: RunRecord, verdicts: Sequence[VerdictRow]) -> AgentAnswers:
    """The answers of the debates whose verdict can be scored."""
    scored = {verdict.case_id: verdict for verdict in verdicts if verdict.correct is not None}
    table = record.turns.select(["case_id", "attempt", "path", "answer", "superseded"])
    effective = pc.and_(pc.is_valid(table["answer"]), pc.invert(pc.fill_null(table["superseded"], False)))
    table = table.filter(pc.and_(effective, pc.match_substring_regex(table["path"], _PATTERN)))
    case, path = CodedTexts.of(table["case_id"]), CodedTexts.of(table["path"])
    of_case = [scored.get(case_id) for case_id in case.texts]
    replies = (case.codes.tolist(), table["attempt"].to_pylist(), table["answer"].to_pylist())
    outcomes = [
        None
        if (verdict := of_case[code]) is None or verdict.attempt != attempt
        else record.references.correct(verdict.case_id, answer, verdict.gold)
        for code, attempt, answer in zip(*replies, strict=True)
    ]
    known = np.array([outcome is not None for outcome in outcomes], np.bool_)
    places = np.array([_place(text) for text in path.texts], np.int64).reshape(-1, 2)[path.codes[known]]
    right = np.array([outcome for outcome in outcomes if outcome is not None], np.bool_)
    given = CodedTexts.of(table["answer"]).codes[known]
    order = np.lexsort((places[:, 0], places[:, 1], case.codes[known]))
    agent, number = places[order, 1], places[order, 0]
    return AgentAnswers(case.texts, case.codes[known][order], agent, number, right[order], given[order])


def _place(path: str) -> tuple[int, int]:
    """Round and agent of a path."""
    place = _PATH.fullmatch(path)
    assert place is not None, "of `_PATTERN`"
    return int(place["round"] or OPENING), int(place["agent"])


def opening_votes(answers: AgentAnswers) -> dict[str, bool]:
    """Whether the most frequent first answer is right, by case; a tie counts as wrong.

    Empty with fewer than three agents, whose votes decide nothing.
    """
    if len(np.unique(answers.agent)) < _FEWEST_VOTERS:
        return {}
    openings = answers.round == OPENING
    several = int(answers.answer.max(initial=0)) + 1
    ballots = answers.case[openings] * several + answers.answer[openings]
    options, first, votes = np.unique(ballots, return_index=True, return_counts=True)
    right = answers.right[openings][first]
    order = np.lexsort((-votes, options // several))
    case, votes, right = (options // several)[order], votes[order], right[order]
    leads = np.flatnonzero(np.diff(case, prepend=-1))
    following = np.minimum(leads + 1, len(case) - 1)
    tied = (following > leads) & (case[following] == case[leads]) & (votes[following] == votes[leads])
    ids = map(answers.cases.__getitem__, case[leads].tolist())
    return dict(zip(ids, (right[leads] & ~tied).tolist(), strict=True))


def flips(answers: AgentAnswers) -> list[RoundFlips]:
    """Changes by round, in order; a round without a pair of answers is left out."""
    same = (np.diff(answers.case) == 0) & (np.diff(answers.agent) == 0) & (np.diff(answers.round) == 1)
    before, now, at = answers.right[:-1][same], answers.right[1:][same], answers.round[1:][same]
    return [
        RoundFlips(
            round=number,
            answers=int((at == number).sum()),
            to_right=int((now & ~before)[at == number].sum()),
            to_wrong=int((before & ~now)[at == number].sum()),
        )
        for number in np.unique(at).tolist()
    ]
