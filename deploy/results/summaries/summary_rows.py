"""Rows of a run's summary, as name and text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from moot.deploy.results.detection.show import detection_rows
from moot.deploy.results.endings import named_ending
from moot.deploy.results.summaries.accuracy import PairedComparison, short_answer_rows, vote_rows
from moot.deploy.results.summaries.evaluation import confidence_rows, evaluation_rows
from moot.deploy.results.summaries.model_replies import replies_words
from moot.deploy.results.summaries.panel_verdicts import panel_verdict_rows, reasoning_rows
from moot.deploy.results.summaries.summary import Summary
from moot.deploy.results.text import calls, cases, count, counts_in_words, in_groups, number, p_value, percent, times

_WIDEST = 100
"""Characters of a line of a sentence in a cell."""


def summary_rows(summary: Summary) -> list[tuple[str, str]]:
    """Rows of the summary, as name and text, in display order.

    A figure without an instance in the run (a debated case, an answer judged on several variants) has no row.
    """
    rows = [
        ("protocol", summary.protocol or "unknown"),
        *([("preset", summary.preset)] if summary.preset else []),
        ("task", summary.task or "unknown"),
        *((f"model: {role}", ", ".join(names)) for role, names in summary.models.items()),
        ("cases", _cases(summary)),
    ]
    return rows + (_debate_rows(summary) if summary.judging is None else []) + _cost_rows(summary)


def _debate_rows(summary: Summary) -> list[tuple[str, str]]:
    """Rows of debates; a run that judges replies has neither answers nor rounds."""
    rows = _answer_rows(summary)
    if summary.votes is not None:
        rows += vote_rows(summary.votes)
    if summary.short_answers is not None:
        rows += short_answer_rows(summary.short_answers)
    if summary.rulings is not None:
        rows += panel_verdict_rows(summary.rulings)
    if summary.reasoning is not None:
        rows += reasoning_rows(summary.reasoning)
    if summary.skip_rate is not None:
        rows += _gate_rows(summary, summary.skip_rate)
    if summary.evaluation is not None:
        rows += evaluation_rows(summary.evaluation)
    if summary.labels_questioned is not None:
        where = ", see moot show --questioned" if summary.labels_questioned else ""
        rows.append(("labels to review", f"{summary.labels_questioned:,}{where}"))
    rows.append(("rounds per case", number(summary.debate_rounds_mean, 2)))
    if summary.debate_rounds_mean_debated is not None:
        rows.append(("rounds per debated case", number(summary.debate_rounds_mean_debated, 2)))
    rows += [
        (f"accuracy, rounds: {each.rounds}", percent(each.accuracy, each.interval, each.scored))
        for each in summary.accuracy_by_rounds or ()
        if each.scored
    ]
    rows += [*_judge_rows(summary), *confidence_rows(summary.confidence or ())]
    if summary.audit is not None:
        rows.append(("skipped - debated, audit", paired_sentence(summary.audit, "if skipped", "if debated")))
    return rows


def _judge_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    kind = f"; {', '.join(summary.audit_variants)} variants" if summary.audit_variants else ""
    for of, audit, more in (("", "", ""), (", audit", "_audit", kind)):
        stability, of_stability = _judged(summary, f"judge_stability{audit}")
        flips, of_flips = _judged(summary, f"flip_rate{audit}")
        split, of_split = _judged(summary, f"flip_rate{audit}_split")
        if stability is not None or flips is not None:
            yield f"judge stability{of}", number(stability) + _of_finished(summary, of_stability) + more
            apart = "" if of_split == of_flips else f"; {percent(split, n=of_split)} where answers differ"
            yield f"judge flip rate{of}", percent(flips) + _of_finished(summary, of_flips) + apart
    if summary.judgments_at_odds:
        of = f"{summary.judgments_at_odds:,} of {summary.judgments_read or 0:,}"
        yield "contradictory judgments", f"{of}: their stated support contradicts their score"


def _judged(summary: Summary, name: str) -> tuple[float | None, int | None]:
    """A figure of the judges, and the number of its cases."""
    return getattr(summary, name), getattr(summary, f"{name}_cases")


def _of_finished(summary: Summary, n: int | None) -> str:
    return f" (n = {count(n)} of {cases(summary.finished)})"


def _answer_rows(summary: Summary) -> list[tuple[str, str]]:
    """Rows of the accuracy; where answers are missing (they count as wrong), also coverage and accuracy of the rest."""
    scored = percent(summary.accuracy, summary.accuracy_interval, summary.scored, summary.scored_groups)
    named = "a rater's score given" if summary.scores else "accuracy"
    rows = list[tuple[str, str]]()
    if summary.scored or summary.detection is not None:  # claims have gold labels, also if none is counted
        rows.append((f"{named}, all parts" if summary.accuracy_by_part else named, scored))
    for each in (part for part in summary.accuracy_by_part or () if part.scored):
        more = "" if each.answered == each.scored else f"; {each.answered:,} answered"
        rows.append((f"{named}, {each.part or 'no part'}", percent(each.accuracy, each.interval, each.scored) + more))
    if summary.answered < summary.scored:
        share = percent(summary.accuracy_answered, summary.accuracy_answered_interval, summary.answered)
        rows += [("answered", f"{summary.answered:,} of {summary.scored:,}"), (f"{named} of answered", share)]
    if summary.detection is not None:
        rows += detection_rows(summary.detection, summary.tokens_per_case)
    return rows


def _gate_rows(summary: Summary, skip_rate: float) -> Iterator[tuple[str, str]]:
    yield "skip rate", percent(skip_rate)
    if (without := summary.gate_untested) is not None:
        yield "gate tests not made", f"{without.words}; {without.skipped:,} of these cases were skipped"
    if summary.gate_coverage is not None:
        yield "gate's probabilities", summary.gate_coverage.words
    if summary.scored_skipped:
        skipped = percent(summary.accuracy_skipped, summary.accuracy_skipped_interval, summary.scored_skipped)
        yield "accuracy, skipped", skipped
    if summary.scored_debated:
        debated = percent(summary.accuracy_debated, summary.accuracy_debated_interval, summary.scored_debated)
        yield "accuracy, debated", debated


def _wrapped(sentence: str) -> str:
    """A sentence on lines that leave the table narrow; a command, between backquotes, stays whole to be copied."""
    whole = re.sub("`.*?`", lambda command: command[0].replace(" ", "\N{NO-BREAK SPACE}"), sentence)
    lines = textwrap.wrap(whole, _WIDEST, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def _cost_rows(summary: Summary) -> list[tuple[str, str]]:
    without_usage = summary.calls_without_usage
    at_least = "at least " if without_usage and summary.tokens_paid is not None else ""
    reused = f"{count(summary.tokens_reused)} in {count(summary.replies_reused)} replies"
    rows = [
        ("tokens paid", f"{at_least}{count(summary.tokens_paid)} in {calls(summary.calls)}"),
        ("tokens reused", reused if summary.replies_reused else "0"),
        ("tokens repaid", f"at most {count(summary.tokens_repaid)}" if summary.tokens_repaid else "0"),
    ]
    rows += _uncertain_rows(summary)
    if summary.cost_usd is None or summary.cost_usd > 0.0:
        rows.append(
            ("cost", "unknown: no price" if summary.cost_usd is None else f"{at_least}{summary.cost_usd:.4f} USD")
        )
    if summary.token_cost_x is not None or without_usage:
        apart = " (of the cases without stopped replies)" if summary.stopped_early else ""
        rows.append(("cost, one agent's answer = 1", times(summary.token_cost_x) + apart))
    if without_usage:
        rows.insert(1, ("calls without usage", count(without_usage)))
    if summary.token_cost_x_without_audits != summary.token_cost_x:
        rows.append(("cost without measurements", times(summary.token_cost_x_without_audits)))
    if summary.stopped_by is not None:
        rows.append(("stopped by", _wrapped(summary.stopped_by)))
    rows.append(("wall time", _wall_time(summary)))
    if summary.how:
        rows.append(("how", "\n".join(f"{count(n)}: {named_ending(how)}" for how, n in summary.how.items())))
    if summary.failures:
        rows.append(("failed cases", counts_in_words(summary.failures)))
    if summary.asks_failed:
        rows.append(("failed asks", counts_in_words(summary.asks_failed)))
    if (stopped := summary.stopped_early) is not None:
        used, saved = count(stopped.tokens_used_estimate), count(stopped.tokens_saved_estimate)
        words = f"{count(stopped.replies)} replies, estimated: {used} tokens used, {saved} saved"
        rows.append(("stopped early", words + (f", {count(stopped.unknown)} unknown" if stopped.unknown else "")))
    rows.append(("replies", replies_words(summary.model_replies)))
    repaired = {name: n for name, n in summary.replies.items() if name in ("repaired", "reasked")}
    if repaired:
        rows.append(("repaired replies", counts_in_words(repaired)))
    return rows


def _wall_time(summary: Summary) -> str:
    """Wall time over all sessions; if the end of one is not recorded, the start of that session."""
    if summary.wall_s is not None:
        return f"{summary.wall_s:,.1f} s"
    since = summary.wall_unknown_since
    return "unknown" if since is None else f"unknown: the record has no end of the session that started at {since}"


def _uncertain_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    """Rows of the usage that servers did not report, or reported implausibly."""
    if summary.attempts_unconfirmed:
        attempts = count(summary.attempts_unconfirmed)
        yield "tokens unconfirmed", f"0 to {count(summary.tokens_unconfirmed[1])} in {attempts} attempts"
    if summary.usage_estimated:
        yield "usage estimated", f"for {count(summary.usage_estimated)} replies whose reported tokens were too few"
    if summary.unsettled:
        written = {"tokens": "{:,.0f} tokens", "usd": "{:.4f} USD"}
        amounts = [form.format(summary.unsettled[key]) for key, form in written.items() if key in summary.unsettled]
        yield "counted as spent", f"at most {' and '.join(amounts)} of killed sessions, not in the record"


def _cases(summary: Summary) -> str:
    parts = [f"{summary.finished:,} finished", f"{summary.failed:,} failed"]
    if summary.open:
        waits = "waits" if summary.parked == 1 else "wait"
        waiting = f", {summary.parked:,} of them {waits} for a person" if summary.parked else ""
        withdrawn = f", {summary.withdrawn:,} of them withdrawn" if summary.withdrawn else ""
        parts.append(f"{summary.open:,} without verdict{waiting}{withdrawn}")
    if summary.reused:
        parts.append(f"{summary.reused:,} from earlier sessions")
    return f"{summary.cases:,}: {', '.join(parts)}"


def paired_sentence(found: PairedComparison, first: str, second: str) -> str:
    """Paired comparison in words: the difference, whether it is shown, and the cases behind it.

    Args:
        first, second: adverbials that name the two methods, such as "with the debates" and "without".

    >>> found = PairedComparison(
    ...     only_first=1, only_second=3, difference=-0.02, p_value=0.3173, n=99, interval=(-0.06, 0.02)
    ... )
    >>> print(paired_sentence(found, "in A", "in B"))
    -2.0 points [-6.0, +2.0], not shown to differ (1 case right only in A, 3 only in B; McNemar p = 0.3173, n = 99)
    """
    if found.difference is None:
        return "unknown (no case can be compared)"
    difference, *ends = (f"{100 * each:+z.1f}" for each in (found.difference, *(found.interval or ())))
    points = f"{difference} points" + (f" [{', '.join(ends)}]" if ends else "")
    shown = {True: ", shown to differ", False: ", not shown to differ", None: ""}[found.differs]
    behind = f"{cases(found.only_first)} right only {first}, {count(found.only_second)} only {second}"
    return f"{points}{shown} ({behind}; {_mcnemar(found)}, n = {in_groups(found.n, found.groups)})"


def paired_words(found: PairedComparison) -> str:
    """Paired comparison in a cell of a table.

    >>> paired_words(PairedComparison(only_first=1, only_second=3, difference=-0.02, p_value=0.4, n=100, groups=40))
    '-2.0 points, McNemar p = 0.4000 (1 and 3 of n = 100 in 40 groups)'
    """
    if found.difference is None:
        return "unknown (no case can be compared)"
    return (
        f"{100 * found.difference:+z.1f} points, {_mcnemar(found)} "
        f"({found.only_first} and {found.only_second} of n = {in_groups(found.n, found.groups)})"
    )


def _mcnemar(found: PairedComparison) -> str:
    sign = "p" if (found.p_value or 0.0) < 1e-4 else "p ="
    return f"McNemar {sign} {p_value(found.p_value)}"
