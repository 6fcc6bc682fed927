"""Glossary of a report's terms and figures, a line each: `moot explain TERM`, and the end of every page."""

from __future__ import annotations

from difflib import get_close_matches

from moot.deploy.results.report.blocks import Table
from moot.protocols.errors import ConfigError

TERMS = {
    "accuracy": "share of right answers among scored verdicts; no answer counts as wrong, failed cases do not count",
    "[low, high]": "95 % interval: Wilson's for a share, by resampling of cases or groups of cases for other figures",
    "skip rate": "share of the finished cases whose debate SELENE's gate skipped, because the first answers agreed",
    "D": "disagreement: mean distance of the meanings of the agents' answers, from 0 (the same) to 2",
    "M": "misalignment: mean gap between the confidence that agents state and their models' own probability, 0 to 1",
    "own probability": "the probability that a model's token log-probabilities give its answer among the labels",
    "judge stability": "1 minus the variance of a judge's scores over perturbed evidence; 1: always the same score",
    "judge flip rate": "share of the evidence variants that alone would choose another winner than most variants",
    "Brier score": "mean squared distance of stated confidence from the outcome; 0 is best, a constant 0.5 gives 0.25",
    "ECE": "expected calibration error: mean gap between stated confidence and the share that is right, over bins",
    "if calibrated": "range of the ECE of a calibrated forecaster on these cases: an ECE inside proves nothing",
    "McNemar p": "probability by chance of so uneven a split of the cases that only one of two runs got right",
    "alpha": "Krippendorff's alpha: agreement of judges beyond chance; 1 is full agreement, 0 is chance",
    "AC2": "Gwet's AC2: agreement beyond chance that stays meaningful if nearly all scores are equal",
    "Q": "quality of a reply: the sum of a rubric's scores, 0 if a judge flagged it",
    "contentiousness": "how strongly the prompt asks sides to contradict each other, 0 to 1 (SocraSynth, EVINCE)",
    "CRIT": "score of an argument by the quality of its reasons and of the rivals against it, 0 to 1",
    "JSD": "Jensen-Shannon divergence of two sides' probabilities, in nat, from 0 (agreement) to ln 2 = 0.693",
    "tokens repaid": "upper bound of the tokens that were paid twice, for calls in flight when a run was killed",
    "unknown": "no source reported the number; a missing number is never shown as 0",
}
"""Meaning by term, in the order of a report."""


def explain(term: str | None = None) -> Table:
    """The glossary, or one entry of it; case does not matter.

    Raises:
        ConfigError: there is no such term; the message names the nearest.
    """
    if term is None:
        return Table("What the words mean", ("term", "meaning"), list(TERMS.items()))
    by_name = {name.casefold(): name for name in TERMS}
    wanted = term.casefold().strip()
    name = by_name.get(wanted) or next((full for key, full in by_name.items() if wanted in key.split()), None)
    if name is None:
        near = [by_name[each] for each in get_close_matches(wanted, by_name, n=3, cutoff=0.4)]
        raise ConfigError(f"no term {term!r}; {'nearest: ' + ', '.join(near) if near else 'moot explain lists all'}")
    return Table("", ("term", "meaning"), [(name, TERMS[name])])
