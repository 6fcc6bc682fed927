"""The simulated judge: reads how well evidence covers an answer, with noise. It has no answer key."""

from __future__ import annotations

import re
from random import Random
from statistics import NormalDist

from moot.actors.models.simulated.draft import Draft, json_draft
from moot.actors.models.simulated.prompt import SeenPrompt
from moot.actors.models.simulated.settings import SimulatedSettings

_WORD = re.compile(r"\w{3,}")
_COMMON = frozenset(
    _WORD.findall(
        "the and for are was were has have had does did that this these those with from into which what who"
        " whom whose when where why how can could will would shall should may might must not but its there"
        " their than then"
    )
)
_OF_THE_PROMPT = frozenset({"answer", "question"})
"""Words with which a prompt states the candidate; the evidence need not have them."""

_NORMAL = NormalDist()
_SUPPORTED, _CONTRADICTED = 0.6, 0.4


class SimulatedJudge:
    """Scores a candidate by the share of the claim's words that the evidence has, plus noise of its own."""

    def __init__(self, settings: SimulatedSettings) -> None:
        self._settings = settings

    def write(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """A score in [0, 1] with two decimals: at least .6 is `supported`, at most .4 `contradicted`."""
        claim = content_words(f"{prompt.question} {prompt.candidate} {prompt.rationale}") - _OF_THE_PROMPT
        covered = [content_words(sentence) & claim for sentence in prompt.evidence]
        share = len(frozenset().union(*covered)) / len(claim) if claim and covered else 0.5
        noise = self._settings.judge_noise * _NORMAL.inv_cdf(min(1.0 - 1e-9, max(1e-9, random.random())))
        score = round(min(1.0, max(0.0, 0.1 + 0.8 * share + noise)), 2)
        support = _support(score)
        values = {"support": support, "score": score, "rationale": _rationale(support, covered)}
        return json_draft(prompt.form, values, "support", _support_belief(support, score))


def content_words(text: str) -> frozenset[str]:
    """The words of a text in lower case, without short and common ones."""
    return frozenset(_WORD.findall(text.casefold())) - _COMMON


def _support(score: float) -> str:
    if score >= _SUPPORTED:
        return "supported"
    return "contradicted" if score <= _CONTRADICTED else "not covered"


def _support_belief(support: str, score: float) -> dict[str, float]:
    sure = 0.55 + 0.8 * min(0.5, abs(score - 0.5)) if support != "not covered" else 0.6
    names = ("supported", "contradicted", "not covered")
    return {name: sure if name == support else (1.0 - sure) / 2 for name in names}


def _rationale(support: str, covered: list[frozenset[str]]) -> str:
    if not any(covered):
        return "No piece of evidence speaks of the claim."
    best = max(range(len(covered)), key=lambda place: len(covered[place]))
    terms = ", ".join(sorted(covered[best])[:5])
    return f"Evidence {best + 1} is closest to the claim ({terms}), which is {support}."
