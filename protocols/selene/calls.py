"""How many calls SELENE makes for a case."""

from __future__ import annotations

from moot.protocols.calls import CallPlan, Calls
from moot.protocols.case import Case
from moot.protocols.selene.opening import TEMPLATE, opening_slots
from moot.protocols.selene.settings import SeleneSettings


def calls_for(settings: SeleneSettings, case: Case, judges: int) -> CallPlan:
    """The fewest and the most calls for one case."""
    agents, gate = settings.agents, settings.gate
    opening = Calls(agents * settings.vote.samples)
    if gate.intrinsic == "resampled" and gate.uses_intrinsic:
        opening += Calls(agents * gate.resamples)
    judged = judges if settings.judging.method != "none" else 0
    few, many = _judging(settings, 1, judged), _judging(settings, _answers(settings, case), judged)
    round_ = Calls(agents, agents * agents)
    skip = Calls(judged)
    short, long = Calls(few) + round_, Calls(many) + round_ * settings.debate.max_rounds
    if gate.when == "never":
        least, most = Calls(few), Calls(many)
    elif gate.when == "always":
        least, most = short, long
    else:
        least, most = skip, long
        if settings.audit_skipped > 0.0:
            most = skip + long
    if settings.both_branches:
        least, most = skip + short, skip + long
    audit = settings.judging.k * judges if settings.audit_judging else 0
    most_audit = Calls(audit * _answers(settings, case))
    return CallPlan(
        opening + least + Calls(audit), opening + most + most_audit, TEMPLATE, opening_slots(case, settings)
    )


def _answers(settings: SeleneSettings, case: Case) -> int:
    """The most candidates that a judge may see."""
    return settings.agents if case.labels is None else min(settings.agents, len(case.labels))


def _judging(settings: SeleneSettings, answers: int, judges: int) -> int:
    """Judge calls over so many distinct answers, paraphrases included."""
    judging = settings.judging
    candidates = settings.agents if judging.candidates == "every-agent" else answers
    if candidates == 1 or judging.method != "evidence-weighted":
        return candidates * judges
    paraphrases = judging.k if judging.variants == "paraphrase" and judges else 0
    return paraphrases + candidates * judging.k * judging.repeats * judges
