"""Outcome: the classifier's label if there is a classifier, else the judges', with its basis."""

from __future__ import annotations

from collections.abc import Sequence

from moot.protocols.ceda.debate import Ending
from moot.protocols.ceda.events import CheckPayload
from moot.protocols.ceda.evidence_split import DEBATERS
from moot.protocols.ceda.judging import CedaRuling, classifier_reading
from moot.protocols.ceda.slots import shows_nothing_on_claim
from moot.protocols.ceda.stance import ClaimMessage, Stance
from moot.protocols.ceda.state import Output, StateContent
from moot.protocols.claims import HALLUCINATED, SUPPORTED, classified_label, is_bare_question
from moot.protocols.lookups import Classified
from moot.protocols.messages import Verdict


def label_of(verdict: int | None) -> str | None:
    """Label of a judge's verdict.

    >>> label_of(1), label_of(0), label_of(None)
    ('supported', 'hallucinated', None)
    """
    return None if verdict is None else SUPPORTED if verdict == 1 else HALLUCINATED


def contradicts(label: str | None, p_hallucinated: float | None) -> bool:
    """Whether a probability and a label are on different sides of one half.

    >>> contradicts("supported", 0.7), contradicts("supported", 0.5), contradicts(None, 0.9)
    (True, False, False)
    """
    if label is None or p_hallucinated is None:
        return False
    return p_hallucinated > 0.5 if label == SUPPORTED else p_hallucinated < 0.5


def output_of(ruling: CedaRuling, classified: Classified | None) -> Output:
    """Output state: the classifier's, or, without one, the judges'.

    A mean probability of the judges that contradicts their own label is dropped.
    """
    label, p = label_of(ruling.verdict), ruling.p_hallucinated
    if classified is not None:
        label, p = classified_label(classified.p_hallucinated), classified.p_hallucinated
    elif contradicts(label, p):
        p = None
    return Output(label=label, p_hallucinated=p, rationale=ruling.spoken_by.summary)


def verdict_of(content: StateContent, ending: Ending, ruling: CedaRuling, classified: Classified | None) -> Verdict:
    """Verdict on a claim; `content` is that of the last state."""
    assert content.output is not None, "the last version of the state has it"
    label, p = content.output.label, content.output.p_hallucinated
    judged, messages = label_of(ruling.verdict), content.debate
    raised = {
        "claim-is-a-question": is_bare_question(content.claim),
        "no-evidence": not content.evidence,
        "pictures-missing": bool(content.missing_pictures),
        "context-missing": bool(content.synthesis and content.synthesis.missing),
        "context-unfounded": bool(content.synthesis and content.synthesis.unfounded),
        "nothing-on-claim": any(shows_nothing_on_claim(content, debater) for debater in DEBATERS),
        "undecided": label is None,
        "stance-unknown": any(each.stance is None for each in messages),
        "stance-derived": any(each.stance is not None and not each.stated for each in messages),
        "stance-contradicts": any(each.is_contradictory for each in messages),
        "judges-missing": ruling.is_short,
        "confidence-contradicts": classified is None and contradicts(judged, ruling.p_hallucinated),
        "classifier-overruled": classified is not None and judged is not None and label != judged,
    }
    return Verdict(
        answer=label,
        how=ending,
        confidence=None if label is None or p is None else max(p, 1.0 - p),
        distribution=None if p is None else {SUPPORTED: 1.0 - p, HALLUCINATED: p},
        rounds=len(messages),
        flags=tuple(flag for flag, holds in raised.items() if holds),
        payload=_payload(content, ruling, classified).model_dump(),
    )


def _payload(content: StateContent, ruling: CedaRuling, classified: Classified | None) -> CheckPayload:
    assert content.output is not None, "the last version of the state has it"
    return CheckPayload(
        p_hallucinated=content.output.p_hallucinated,
        verdict=ruling.verdict,
        p_judges=ruling.p_hallucinated,
        classifier=classifier_reading(classified),
        summary=ruling.spoken_by.summary,
        agreed=list(ruling.spoken_by.agreed),
        disputed=list(ruling.spoken_by.disputed),
        stances=_stances(content.debate[::-1]),
        first_stances=_stances(content.debate),
    )


def _stances(messages: Sequence[ClaimMessage]) -> dict[str, Stance | None]:
    """Stance of each debater's first message; None when it is unknown, or the debater never spoke."""
    return {name: next((each.stance for each in messages if each.debater == name), None) for name in DEBATERS}
