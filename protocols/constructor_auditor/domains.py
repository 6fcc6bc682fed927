"""The domains: which one a case belongs to, who speaks in it, and what of the case they are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moot.protocols.case import Case, Domain
from moot.protocols.constructor_auditor.settings import ConstructorAuditorSettings
from moot.protocols.errors import CaseUnfit

_MARK = re.compile(r"@[A-Z]+[0-9]")
"""Stands in an essay for a word that was taken out, so that its writer stays unknown."""


@dataclass(frozen=True, slots=True)
class SpeakerNames:
    """Names of a domain's two speakers, in prompts and for judges."""

    constructor: str
    auditor: str


CASTS: Mapping[Domain, SpeakerNames] = {
    "rubric scoring": SpeakerNames("Advocate", "Skeptic"),
    "mathematics": SpeakerNames("Solver", "Verifier"),
    "factual QA": SpeakerNames("Proponent", "Challenger"),
}
"""Speakers by domain ("The Confident Liar", Table 1, where the Skeptic of "Early-Token Confidence" is a Critic)."""


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


def is_labelled(domain: Domain, settings: ConstructorAuditorSettings) -> bool:
    """Whether the two speakers of a domain write labelled sections."""
    return settings.sections == "always" or (settings.sections == "by-domain" and domain != "rubric scoring")


def speaker_slots(
    case: Case, domain: Domain, settings: ConstructorAuditorSettings, passages: Sequence[str] = ()
) -> dict[str, Any]:
    """The case as the constructor and the auditor are shown it.

    Where a text is scored they see no score that anybody gave, and no list of scores to choose from: they argue about
    the trait, and its guide says what each score means. A case without a criterion has its question in its place.

    Args:
        passages: what was found for a question that comes without a passage.
    """
    scored = domain == "rubric scoring"
    given = case.passage or passages or case.images
    return _material(case, domain, passages) | {
        "question": "" if scored and case.criterion else case.question,
        "labels": [] if scored else list(case.labels or ()),
        "choices": [] if scored else list(case.choices),
        "criterion": _criterion(case),
        "closed_book": domain == "factual QA" and not given,
        "sections": is_labelled(domain, settings),
        "answer_first": settings.answer_first,
    }


def synthesis_slots(case: Case, domain: Domain, passages: Sequence[str] = ()) -> dict[str, Any]:
    """The case as the synthesizer is shown it: the question, and what can be answered."""
    return _material(case, domain, passages) | {
        "question": case.question,
        "labels": list(case.labels or ()),
        "choices": list(case.choices),
        "criterion": _criterion(case, with_scores=True),
    }


def _material(case: Case, domain: Domain, passages: Sequence[str]) -> dict[str, Any]:
    return {
        "domain": domain,
        "passage": case.passage,
        "passages": list(passages),
        "marks": domain == "rubric scoring" and _MARK.search(case.passage) is not None,
    }


def _criterion(case: Case, *, with_scores: bool = False) -> dict[str, Any] | None:
    if case.criterion is None:
        return None
    criterion = case.criterion
    shown = {"trait": criterion.trait, "guide": criterion.guide, "assignment": criterion.assignment}
    return shown | {"lowest": criterion.lowest, "highest": criterion.highest} if with_scores else shown
