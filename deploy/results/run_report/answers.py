"""Answers of each agent in each round of a debate, and whether they were right."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow.compute as pc

from moot.actors.record.schema import CaseKey
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.record.run_record import RunRecord

OPENING = 0
"""The round of the openings."""

_FEWEST_VOTERS = 3

_PATH = re.compile(r"(?:opening|round/(?P<round>\d+))/agent/(?P<agent>\d+)")
_PATTERN = r"^(opening|round/[0-9]+)/agent/[0-9]+$"


class AgentAnswers(NamedTuple):
    """An agent's answers in one debate that can be scored.

    Attributes:
        right: by round, `OPENING` first, whether its answer was right; rounds without a usable answer are missing.
        first: its answer before the debate; None without a usable one.
    """

    case_id: str
    agent: int
    right: Mapping[int, bool]
    first: str | None = None


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


def agent_answers(record: RunRecord, verdicts: Sequence[VerdictRow]) -> list[AgentAnswers]:
    """The answers of the debates whose verdict can be scored, by case and agent."""
    gold = {verdict.key: verdict.gold for verdict in verdicts if verdict.correct is not None}
    by_agent: dict[tuple[CaseKey, int], dict[int, bool]] = defaultdict(dict)
    first: dict[tuple[CaseKey, int], str] = {}
    known: dict[tuple[str, str], bool | None] = {}
    for key, number, agent, answer in _answers(record):
        if key not in gold:
            continue
        place = (key[0], answer)
        if place not in known:
            known[place] = record.references.correct(key[0], answer, gold[key])
        if (right := known[place]) is not None:
            by_agent[key, agent][number] = right
            if number == OPENING:
                first[key, agent] = answer
    return [
        AgentAnswers(key[0], agent, rounds, first.get((key, agent)))
        for (key, agent), rounds in sorted(by_agent.items())
    ]


def _answers(record: RunRecord) -> Iterator[tuple[CaseKey, int, int, str]]:
    """Debate, round, agent and answer of each effective reply of an agent with an answer."""
    table = record.turns
    standing = pc.and_(pc.is_valid(table["answer"]), pc.invert(pc.fill_null(table["superseded"], False)))
    table = table.filter(pc.and_(standing, pc.match_substring_regex(table["path"], _PATTERN)))
    places = {path: _place(path) for path in table["path"].unique().to_pylist()}
    columns = (table[name].to_pylist() for name in ("case_id", "attempt", "path", "answer"))
    for case_id, attempt, path, answer in zip(*columns, strict=True):
        yield (case_id, attempt), *places[path], answer


def _place(path: str) -> tuple[int, int]:
    """Round and agent of a path."""
    place = _PATH.fullmatch(path)
    assert place is not None, "of `_PATTERN`"
    return int(place["round"] or OPENING), int(place["agent"])


def opening_votes(answers: Iterable[AgentAnswers]) -> dict[str, bool]:
    """Whether the most frequent first answer is right, by case; a tie counts as wrong.

    Empty with fewer than three agents, whose votes decide nothing.
    """
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    right: dict[tuple[str, str], bool] = {}
    agents = set[int]()
    for each in answers:
        agents.add(each.agent)
        if each.first is not None:
            votes[each.case_id][each.first] += 1
            right[each.case_id, each.first] = each.right[OPENING]
    if len(agents) < _FEWEST_VOTERS:
        return {}
    return {case_id: _leads(found, right, case_id) for case_id, found in votes.items()}


def _leads(votes: Counter[str], right: Mapping[tuple[str, str], bool], case_id: str) -> bool:
    (answer, most), *others = votes.most_common(2)
    return right[case_id, answer] and all(count < most for _, count in others)


def flips(answers: Iterable[AgentAnswers]) -> list[RoundFlips]:
    """Changes by round, in order; a round without a pair of answers is left out."""
    counts: dict[int, Counter[tuple[bool, bool]]] = defaultdict(Counter)
    for each in answers:
        for number, right in each.right.items():
            if (before := each.right.get(number - 1)) is not None:
                counts[number][before, right] += 1
    return [
        RoundFlips(round=number, answers=found.total(), to_right=found[False, True], to_wrong=found[True, False])
        for number, found in sorted(counts.items())
    ]
