"""The end: the classifier's label where there is a classifier, else the judges', with what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moot.protocols.ceda.dealing import DEBATERS
from moot.protocols.ceda.debate import Ending
from moot.protocols.ceda.judging import Ruling, classifier_record
from moot.protocols.ceda.stance import Said
from moot.protocols.ceda.state import Content, Output
from moot.protocols.claims import HALLUCINATED, SUPPORTED, classified_label
from moot.protocols.lookups import Classified
from moot.protocols.messages import Verdict


def label_of(verdict: int | None) -> str | None:
    """The label that a judge's verdict means.

    >>> label_of(1), label_of(0), label_of(None)
    ('supported', 'hallucinated', None)
    """
    return None if verdict is None else SUPPORTED if verdict == 1 else HALLUCINATED


def output_of(ruling: Ruling, classified: Classified | None) -> Output:
    """The output state: the classifier's, or, without one, the judges'."""
    if classified is None:
        label, p = label_of(ruling.verdict), ruling.p_hallucinated
    else:
        label, p = classified_label(classified.p_hallucinated), classified.p_hallucinated
    return Output(label=label, p_hallucinated=p, rationale=ruling.spoken_by.summary)


def verdict_of(content: Content, ending: Ending, ruling: Ruling, classified: Classified | None) -> Verdict:
    """The verdict on a claim; `content` is that of the last state."""
    assert content.output is not None, "the last version of the state has it"
    label, p = content.output.label, content.output.p_hallucinated
    judged, said = label_of(ruling.verdict), content.debate
    raised = {
        "no-evidence": not content.evidence,
        "undecided": label is None,
        "stance-unknown": any(each.stance is None for each in said),
        "judges-missing": ruling.is_short,
        "classifier-overruled": classified is not None and judged is not None and label != judged,
    }
    return Verdict(
        answer=label,
        how=ending,
        confidence=_confidence(label, p),
        distribution=None if p is None else {SUPPORTED: 1.0 - p, HALLUCINATED: p},
        rounds=len(said),
        flags=tuple(flag for flag, holds in raised.items() if holds),
        payload=_payload(content, p, ruling, classified),
    )


def _confidence(label: str | None, p_hallucinated: float | None) -> float | None:
    """The probability of the label: max(p, 1 - p) where a classifier chose it."""
    if label is None or p_hallucinated is None:
        return None
    return p_hallucinated if label == HALLUCINATED else 1.0 - p_hallucinated


def _payload(content: Content, p: float | None, ruling: Ruling, classified: Classified | None) -> dict[str, Any]:
    return {
        "p_hallucinated": p,
        "source": "classifier" if classified else None if p is None else "judges",
        "verdict": ruling.verdict,
        "p_judges": ruling.p_hallucinated,
        "classifier": classifier_record(classified),
        "summary": ruling.spoken_by.summary,
        "agreed": list(ruling.spoken_by.agreed),
        "disputed": list(ruling.spoken_by.disputed),
        "stances": _stances(content.debate[::-1]),
        "first_stances": _stances(content.debate),
    }


def _stances(said: Sequence[Said]) -> Mapping[str, str | None]:
    """By debater the stance of the first of its messages; None when it is unknown, or it never spoke."""
    return {name: next((each.stance for each in said if each.debater == name), None) for name in DEBATERS}
