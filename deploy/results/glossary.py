"""Meanings of terms, of figures and of codes of how a debate ended: `moot explain TERM`, the end of every page."""

from __future__ import annotations

import re
from difflib import get_close_matches

from moot.deploy.results.report.blocks import Table
from moot.protocols.errors import ConfigError

_ENDINGS = {
    "skipped": "the gate skipped the debate",
    "single": "one agent answered alone",
    "alone": "one agent answered alone",
    "vote": "the agents voted",
    "unanimous": "all agents agreed in the last round",
    "stable-agree": "the distance between answers stopped changing; they agree",
    "stable-disagree": "the distance between answers stopped changing; they differ",
    "diverging": "the answers moved apart until the last round",
    "t_max": "the last round was reached",
    "max_rounds": "the last round was reached",
    "max turns": "the last turn was reached",
    "converged": "the sides' distributions converged",
    "stalled": "the distance between the sides' distributions stopped changing",
    "printed": "the stopping rule as printed in the paper",
    "ensemble": "one round, as an ensemble",
    "agreed": "both sides gave the same answer",
    "consensus": "the debaters agreed",
    "plateau": "the arguments stopped improving",
    "schedule-ended": "the schedule of contentiousness ended",
    "both-done": "both sides had no more to say",
    "ended-by-person": "a person ended it",
    "declined": "a side declined to argue",
    "turn-failed": "a side gave no usable reply",
    "synthesis": "a third agent answered after both sides",
    "judged": "the judges scored the reply",
    "failed": "the case failed",
    "unknown": "not recorded",
}


_FAILURES = {
    "ask_failed": "a reply that the debate needs was not usable",
    "bug": "an error in moot or in the protocol",
    "case_unfit": "the protocol cannot debate such a case",
    "deadline": "the debate exceeded its deadline",
    "encoder_failed": "texts could not be embedded",
    "invalid_case": "the case itself is not valid",
    "path_reused": "the protocol used one path for two steps",
    "quorum_failed": "too few usable replies to continue",
    "replay_diverged": "the replay made an ask that the record does not have",
}


def failure_words(kind: str) -> str:
    """Text for a kind of failure, followed by its code; a kind of a user's own protocol is unchanged.

    >>> failure_words("deadline"), failure_words("mine")
    ('failed: the debate exceeded its deadline (deadline)', 'failed: mine')
    """
    return f"failed: {_FAILURES[kind]} ({kind})" if kind in _FAILURES else f"failed: {kind}"


def code_meaning(code: str) -> str | None:
    """Meaning of a code of either column; None for an unknown code."""
    return _ENDINGS.get(code) or _FAILURES.get(code)


def ending_words(how: str) -> str:
    """Text for a code; a code of a user's own protocol is unchanged.

    >>> ending_words("skipped"), ending_words("mine")
    ('the gate skipped the debate', 'mine')
    """
    return _ENDINGS.get(how, how)


def named_ending(how: str) -> str:
    """Text of a code, followed by the code as in the record.

    >>> named_ending("vote"), named_ending("mine")
    ('the agents voted (vote)', 'mine')
    """
    words = ending_words(how)
    return words if words == how else f"{words} ({how})"


TERMS = {
    "accuracy": "share of right answers among scored verdicts; no answer counts as wrong, failed cases do not count",
    "answered": "scored verdicts that have an answer; `accuracy of answered` covers these alone",
    "tied votes": "votes with several most frequent answers; the accuracy counts one of them, `ties as wrong` none",
    "exact match": "share of short answers that equal a right one, apart from case, articles and punctuation",
    "repaired": "usable asks whose reply was no plain JSON: fenced, among other text, or mended",
    "mended": "mark of a reply whose JSON, or LaTeX in it, was repaired before it was read; counted as repaired",
    "reasked": "usable asks that were asked a second time, after a reply that could not be read",
    "of several objects": "usable asks whose JSON object stood in the reply several times",
    "wrapped": "usable asks whose label stands in \\boxed{} or behind `Answer:`",
    "by letter": "usable asks whose label is the letter or digit in front of more words, as in `B) Jupiter`",
    "by prefix": "usable asks whose label begins a longer answer, as in `No, it was moved`",
    "outside labels": "replies whose answer is none of the case's labels, or fits several; they are asked again",
    "overlong": "replies that were longer than the requested tokens can be, and were cut; not counted as truncated",
    "prompt cut": "replies to a prompt of which the server seems to have read a part only, by the tokens it counted",
    "without log-probabilities": "replies that came without the token log-probabilities that moot requested",
    "token F1": "overlap of the words of a short answer and of a right one, 0 to 1",
    "a rater's score given": "share of the verdicts whose score is one that a human rater gave",
    "QWK": "quadratically weighted kappa: agreement of two scores beyond chance; far differences weigh more",
    "exact": "share of texts to which two raters, or the verdict and a rater, give the same score",
    "within 1": "share of texts on which two raters, or the verdict and a rater, differ by at most 1",
    "Acc@1": "share of scored cases in whose final distribution the right label is the most probable one",
    "Acc@3": "share of scored cases in whose final distribution the right label is among the three most probable",
    "macro-F1": "mean over the labels of F1, the harmonic mean of precision and recall; each label weighs the same",
    "F1": "harmonic mean of a class's precision and recall, that class being the positive one; macro: mean of both",
    "recall": "share of the claims of a class that are found",
    "claims": "claims that a figure counts, and how many are left out for which reason",
    "claims left open": "claims without a decision; each is a miss of its class, and wrong",
    "judges' bare verdict": "the decision of the judges alone, before CEDA's classifier and rules",
    "trivial": "the better of two baselines that give every claim the same label",
    "aAcc": "HallusionBench: questions answered right; fAcc: figures, qAcc: question pairs, with all of it right",
    "[low, high]": "95 % interval: Wilson's for a share, Student's t over cases or groups of cases for other figures; "
    "that of a difference inverts its test",
    "coverage": "share of the cases that have an answer, or a value of the figure",
    "points": "percentage points: a difference of two shares, as of accuracies",
    "a vote of the first answers": "the most frequent answer before any debate; a tie counts as wrong",
    "how": "why a debate ended, as a code in the record; moot explain CODE gives its meaning",
    "run": "all debates of one configuration, in one folder",
    "open": "cases without a verdict yet",
    "protocol": "how a case is debated; `moot protocols` lists all, `moot protocols NAME` the settings of one",
    "preset": "settings of a protocol as its paper states them",
    "task": "the cases of a run, and the rule that compares an answer with the right one",
    "model": "the model of each role",
    "cases": "cases of a run: finished, failed, and without verdict yet; of a figure: those that it covers",
    "labels to review": "gold labels that a confident consensus contradicts; moot show RUN --questioned lists them",
    "rounds per case": "mean number of rounds; a skipped or single answer has 0",
    "rounds per debated case": "mean number of rounds of the cases that were debated",
    "max_turns": "setting of CEDA: most turns of a debate; other protocols have max_rounds or debate.t_max",
    "verdicts": "SocraSynth: debates by the side with the better closing, which judges read in both orders",
    "consensus": "joint answer of the agents or sides; SocraSynth's row counts how two sides reached it",
    "joint proposals": "SocraSynth: debates by their joint proposal: both sides consent, one has reservations, or none",
    "reasoning": "judged quality of a role's replies: mean Q, and the share that is flagged",
    "skipped - debated": "accuracy of the skipped answers less that of the debated ones, on cases that ran both",
    "skip rate": "share of finished cases whose debate SELENE's gate skipped: D, M, p and the answers passed its tests",
    "gate tests not made": "cases whose D, M or mean p was unknown, so that SELENE's gate could not test it",
    "gate's probabilities": "openings whose p is known, if M and mean p of some case cover a part of its openings only",
    "D": "disagreement: mean cosine distance, over pairs of agents, of the vectors of their replies, from 0 to 2; the "
    "events `gate` and `round` name the vectors in the table `embeddings`",
    "M": "misalignment: mean gap between the confidence that agents state and their models' own probability, 0 to 1",
    "states": "the confidence that an agent or a judge gives in its reply, 0 to 1",
    "own probability, p": "the probability that a model's token log-probabilities give its answer among the labels",
    "judge stability": "1 minus the variance of a judge's scores over perturbed evidence, mean of n cases; 1: equal",
    "judge flip rate": "share of the evidence variants that alone would choose another winner than most variants; a "
    "tie in a variant counts for the winner if that shares it, else for the candidate listed first",
    "where answers differ": "judge flip rate over cases with two different answers or more; one cannot flip",
    "evidence variant": "one of several samples of the evidence beside which a judge reads the same answer",
    "contradictory judgments": "judgments whose stated support for an answer contradicts the score that they give it",
    "S": "score of an answer in SELENE by its judges, over all evidence variants, 0 to 1",
    "position bias": "how much a judge favours the side that it reads first, or second",
    "Brier score": "mean squared distance of stated confidence from the outcome; 0 is best, a constant 0.5 gives 0.25",
    "ECE": "expected calibration error: mean gap between stated confidence and the share that is right, over bins",
    "if calibrated": "range of the ECE of a calibrated forecaster on these cases: an ECE inside proves nothing",
    "McNemar p": "probability by chance of so uneven a split of the cases that only one of two runs got right; a group "
    "of dependent cases counts as one. Below 0.05 exactly if the interval beside it excludes 0",
    "+b/-c": "cases that only this run, or only the other, got right; McNemar's test is over these",
    "group": "dependent cases: those that the file puts into one group, and equal cases; n = 36 in 12 groups",
    "alpha": "Krippendorff's alpha: agreement of judges beyond chance; 1 is full agreement, 0 is chance",
    "AC2": "Gwet's AC2: agreement beyond chance that stays meaningful if nearly all scores are equal",
    "n": "number of cases, or of other units, that a figure covers",
    "raw": "observed agreement of the judges, without correction for chance",
    "marks": "scores that the judges gave, of those that were asked for",
    "Q": "quality of a reply: the sum of a rubric's scores, 3 to 9 in moot's rubrics, 0 if a judge flagged it",
    "flagged": "a judge named a fault in a reply, such as evidence that is not in the text",
    "effective debaters": "number of independent debaters whose errors would cancel as much; 1 of 2: both err alike",
    "effective number of debaters": "the same, of CEDA's two debaters: 2 / (1 + rho) at a correlation rho of errors",
    "correlation of debaters' errors": "rho: how often two debaters err on the same claims, -1 to 1; 0: independently",
    "rho": "correlation, -1 to 1; of debaters: of their errors; in `moot analyze`: of ranks, by Spearman",
    "contentiousness": "how strongly the prompt asks sides to contradict each other, 0 to 1 (SocraSynth, EVINCE)",
    "--dial": "means by contentiousness over all rounds of all debates with that level, without round 0; a debate "
    "counts once for each of its rounds at the level",
    "kappa": "contentiousness of a round, 0 to 1; in QWK and other agreements, Cohen's kappa",
    "CRIT": "score of an argument by the quality of its reasons and of its rivals, of 10; in the record, 0 to 1",
    "gamma": "in CRIT, how well a reason supports the claim, 0 to 1; Gamma: the score of the whole argument, of 10",
    "theta": "CRIT's credibility of a reason's source, 0 to 1",
    "JSD": "Jensen-Shannon divergence of two sides' probabilities, in nat, from 0 (agreement) to ln 2 = 0.693",
    "WD": "Wasserstein distance of two sides' probabilities: the mass that moves times the distance, 0 is agreement",
    "KL": "Kullback-Leibler divergence of one side's probabilities from another's, in nat; about 0 is agreement. Every "
    "probability q of the other is smoothed: (q + e) / (1 + k e), with e = 1e-6 (kl_epsilon) and k labels",
    "CE": "cross entropy of one side's probabilities under another's, in nat; smoothed as KL",
    "MI": "mutual information of two sides' labels, in nat; 0: independent; NMI: the same, as a share of 1",
    "NMI": "normalised mutual information of two sides' labels, 0 to 1",
    "token entropy": "mean over the tokens of all replies together, so that a long reply weighs more, in nat",
    "H": "Shannon entropy of a side's probabilities, in nat: 0 is certain; H mixture: of the sides' mean",
    "gain": "decrease of the entropy of the sides' mean since the last round, in nat",
    "answers changed": "agents whose answer differs from their answer in the round before",
    "MRR": "mean reciprocal rank: mean of 1 / the place of the right label in a ranking; 1 is always first",
    "cost, one agent's answer = 1": "tokens of all replies, as a multiple of agent 0's first answers",
    "cost": "USD of all calls, at the prices recorded at the start; in a comparison: multiple of one agent's answer",
    "cost without measurements": "the same, without calls that only measure, such as audits",
    "tokens paid": "tokens of all replies that this run paid for, prompts included, in every attempt",
    "tokens reused": "tokens of replies that come from the record of another run (--reuse); nothing was paid for them",
    "tokens per case": "mean tokens of a finished case",
    "tokens unconfirmed": "range of the tokens of calls that ended without a report of the server, as after a time-out",
    "calls without usage": "calls whose server reported no tokens; totals are lower bounds",
    "usage estimated": "replies whose reported tokens were too few for their text; an estimate is counted instead",
    "counted as spent": "tokens or USD reserved by killed sessions: a budget counts them, the record has no replies",
    "seconds per case": "time from a case's start to its verdict: mean, median and 90th percentile",
    "wall time": "time that all sessions of the run took",
    "stopped by": "why the last session ended early, such as a budget",
    "stopped early": "replies that a rule of `moot calibrate --early-stop` ended before their end",
    "failed cases": "cases without a verdict, by reason; --retry-failed runs them again",
    "failed asks": "requests of a protocol without a usable reply, by reason",
    "replies": "usable replies of the requests, by role",
    "repaired replies": "replies that needed a repair of their format, or a second request",
    "tokens repaid": "upper bound of the tokens that were paid twice, for calls in flight when a run was killed",
    "unknown": "no source reported the number; a missing number is never shown as 0",
}
"""Meaning by term, in the order of a report."""


def explain(term: str | None = None) -> Table:
    """Table of the glossary, of a term, of the terms with its words, or of a code of `how` or `failure`; ignores case.

    A row's label that adds something to a term, as in `accuracy, skipped`, has the meaning of the term.

    Raises:
        ConfigError: the term is unknown; the message names the nearest ones.
    """
    if term is None:
        return Table("What the words mean", ("term", "meaning"), list(TERMS.items()))
    wanted = term.casefold().strip()
    names = _named(_words(wanted)) or _named(_words(re.split("[,:/]", wanted)[0]))
    rows = [(name, TERMS[name]) for name in names]
    if _words(wanted) not in _BY_WORDS:
        codes = dict.fromkeys((wanted, wanted.replace(" ", "_"), wanted.replace("_", " ")))
        rows = [(code, meaning) for code in codes if (meaning := code_meaning(code)) is not None] or rows
    if not rows:
        by_name = {name.casefold(): name for name in TERMS}
        near = [by_name[each] for each in get_close_matches(wanted, by_name, n=3, cutoff=0.4)]
        raise ConfigError(f"no term {term!r}; {'nearest: ' + ', '.join(near) if near else 'moot explain lists all'}")
    return Table("", ("term", "meaning"), rows)


def _words(text: str) -> tuple[str, ...]:
    """Words of a term, without case and punctuation; of an underscore and a hyphen as of a space."""
    return tuple(re.findall(r"[^\W_]+'?s?(?:@\d)?", text.casefold()))


_BY_WORDS = {_words(name): name for name in TERMS}


def _named(wanted: tuple[str, ...]) -> list[str]:
    """Terms with exactly these words; else all terms that have them among theirs; else the longest one that they
    contain, in one piece."""
    if wanted in _BY_WORDS:
        return [_BY_WORDS[wanted]]
    if not wanted:
        return []
    having = [name for words, name in _BY_WORDS.items() if {*wanted} <= {*words}]
    parts = (wanted[i:j] for i in range(len(wanted)) for j in range(len(wanted), i, -1))
    contained = max((part for part in parts if part in _BY_WORDS), key=len, default=None)
    return having or ([] if contained is None else [_BY_WORDS[contained]])
