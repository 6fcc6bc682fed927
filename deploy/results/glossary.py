"""Glossary of a report's terms and figures, a line each: `moot explain TERM`, and the end of every page."""

from __future__ import annotations

from difflib import get_close_matches

from moot.deploy.results.endings import code_meaning
from moot.deploy.results.report.blocks import Table
from moot.protocols.errors import ConfigError

TERMS = {
    "accuracy": "share of right answers among scored verdicts; no answer counts as wrong, failed cases do not count",
    "[low, high]": "95 % interval: Wilson's for a share, by resampling of cases or groups of cases for other figures",
    "coverage": "share of the cases that have an answer, or a value of the figure",
    "points": "percentage points: a difference of two shares, as of accuracies",
    "a vote of the first answers": "the most frequent answer before any debate; a tie counts as wrong",
    "how": "why a debate ended, as a code in the record; `moot explain CODE` gives its meaning",
    "skip rate": "share of finished cases whose debate SELENE's gate skipped: D, M, p and the answers passed its tests",
    "D": "disagreement: mean distance of the meanings of the agents' answers, from 0 (the same) to 2",
    "M": "misalignment: mean gap between the confidence that agents state and their models' own probability, 0 to 1",
    "states": "the confidence that an agent or a judge gives in its reply, 0 to 1",
    "own probability, p": "the probability that a model's token log-probabilities give its answer among the labels",
    "judge stability": "1 minus the variance of a judge's scores over perturbed evidence; 1: always the same score",
    "judge flip rate": "share of the evidence variants that alone would choose another winner than most variants",
    "evidence variant": "one of several samples of the evidence beside which a judge reads the same answer",
    "S": "score of an answer in SELENE by its judges, over all evidence variants, 0 to 1",
    "position bias": "how much a judge favours the side that it reads first, or second",
    "Brier score": "mean squared distance of stated confidence from the outcome; 0 is best, a constant 0.5 gives 0.25",
    "ECE": "expected calibration error: mean gap between stated confidence and the share that is right, over bins",
    "if calibrated": "range of the ECE of a calibrated forecaster on these cases: an ECE inside proves nothing",
    "McNemar p": "probability by chance of so uneven a split of the cases that only one of two runs got right",
    "alpha": "Krippendorff's alpha: agreement of judges beyond chance; 1 is full agreement, 0 is chance",
    "AC2": "Gwet's AC2: agreement beyond chance that stays meaningful if nearly all scores are equal",
    "Q": "quality of a reply: the sum of a rubric's scores, 3 to 9 in moot's rubrics, 0 if a judge flagged it",
    "flagged": "a judge named a fault in a reply, such as evidence that is not in the text",
    "effective debaters": "number of independent debaters whose errors would cancel as much; 1 of 2: both err alike",
    "contentiousness": "how strongly the prompt asks sides to contradict each other, 0 to 1 (SocraSynth, EVINCE)",
    "CRIT": "score of an argument by the quality of its reasons and of its rivals, of 10; in the record, 0 to 1",
    "JSD": "Jensen-Shannon divergence of two sides' probabilities, in nat, from 0 (agreement) to ln 2 = 0.693",
    "MRR": "mean reciprocal rank: mean of 1 / the place of the right label in a ranking; 1 is always first",
    "cost, one agent's answer = 1": "tokens of all replies, as a multiple of agent 0's first answers",
    "tokens repaid": "upper bound of the tokens that were paid twice, for calls in flight when a run was killed",
    "unknown": "no source reported the number; a missing number is never shown as 0",
}
"""Meaning by term, in the order of a report."""


def explain(term: str | None = None) -> Table:
    """Table of the glossary, of a term, of the terms with a word, or of a code of `how` or `failure`; ignores case.

    Raises:
        ConfigError: the term is unknown; the message names the nearest ones.
    """
    if term is None:
        return Table("What the words mean", ("term", "meaning"), list(TERMS.items()))
    by_name = {name.casefold(): name for name in TERMS}
    wanted = term.casefold().strip()
    names = [by_name[wanted]] if wanted in by_name else [full for key, full in by_name.items() if wanted in key.split()]
    rows = [(name, TERMS[name]) for name in names]
    if not rows and (meaning := code_meaning(wanted)) is not None:
        rows = [(wanted, meaning)]
    if not rows:
        near = [by_name[each] for each in get_close_matches(wanted, by_name, n=3, cutoff=0.4)]
        raise ConfigError(f"no term {term!r}; {'nearest: ' + ', '.join(near) if near else 'moot explain lists all'}")
    return Table("", ("term", "meaning"), rows)
