"""The domains: which one a case belongs to, who speaks in it, and what of the case they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moot.protocols.case import Case, Domain
from moot.protocols.errors import CaseUnfit


@dataclass(frozen=True, slots=True)
class Cast:
    """Who the two speakers of a domain are, as prompts and judges call them."""

    constructor: str
    auditor: str


CASTS: Mapping[Domain, Cast] = {
    "rubric scoring": Cast("Advocate", "Critic"),
    "mathematics": Cast("Solver", "Verifier"),
    "factual QA": Cast("Proponent", "Challenger"),
}
"""By domain ("The Confident Liar", Table 1)."""


def domain_of(case: Case) -> Domain:
    """The case's domain: the one that it names, else rubric scoring if it has a criterion, else factual QA.

    Raises:
        CaseUnfit: a text is to be scored, and neither a criterion nor labels say which scores there are.

    >>> domain_of(Case(id="c", question="Who was first?"))
    'factual QA'
    """
    domain: Domain = case.domain or ("rubric scoring" if case.criterion else "factual QA")
    if domain == "rubric scoring" and case.criterion is None and case.labels is None:
        raise CaseUnfit("no score can be asked for: give the case a criterion, or its scores as labels")
    return domain


def speaker_slots(case: Case, domain: Domain) -> dict[str, Any]:
    """The case as the constructor and the auditor are shown it.

    Where a text is scored they see no score that anybody gave, and no list of scores to choose from: they argue about
    the trait, and its guide says what each score means. A case without a criterion has its question in its place.
    """
    scored = domain == "rubric scoring"
    return {
        "domain": domain,
        "question": "" if scored and case.criterion else case.question,
        "labels": [] if scored else list(case.labels or ()),
        "choices": [] if scored else list(case.choices),
        "passage": case.passage,
        "criterion": _criterion(case),
    }


def synthesis_slots(case: Case, domain: Domain) -> dict[str, Any]:
    """The case as the synthesizer is shown it: the question, and what can be answered."""
    return speaker_slots(case, domain) | {
        "question": case.question,
        "labels": list(case.labels or ()),
        "choices": list(case.choices),
        "criterion": _criterion(case, with_scores=True),
    }


def _criterion(case: Case, *, with_scores: bool = False) -> dict[str, Any] | None:
    if case.criterion is None:
        return None
    criterion = case.criterion
    shown = {"trait": criterion.trait, "guide": criterion.guide, "assignment": criterion.assignment}
    return shown | {"lowest": criterion.lowest, "highest": criterion.highest} if with_scores else shown
