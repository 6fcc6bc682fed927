"""Shows a run of judges: on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console

from moot.deploy.reading.report.blocks import Block, Heading, Items, Table
from moot.deploy.reading.report.render import banner, show_report
from moot.deploy.reading.summaries.consistency import Agreement, Figure
from moot.deploy.reading.summaries.judged import Judging, PanelVerdict, PassScores
from moot.deploy.reading.text import count, number, percent
from moot.protocols.rubrics.mark_sheet import FLAG

_SHOWN = 20
"""Replies that are listed; JSON has all."""

_FEW_CLUSTERS = 30
"""Independent cases below which the intervals cover less than they say."""


_LEGEND = "alpha, AC2: 1 is full agreement, 0 is chance; [95 % intervals], cases drawn"


def show_judging(found: Judging, form: str = "text", console: Console | None = None) -> None:
    """Write the figures of a run of judges to the console."""
    head = [*banner(found.simulated), Heading("Judges", 1)]
    show_report(found, lambda: [*head, *judging_tables(found)], form, console)


def judging_tables(found: Judging) -> list[Block]:
    """Scores, agreement between and within judges, the verdicts; and what is to be said of them."""
    agreement = found.consistency
    blocks = [_scores(found)]
    if agreement.between:
        title = f"agreement of {agreement.between[0].raters} judges with each other"
        blocks.append(_agreement(title, "(replies x passes)", agreement.between))
    blocks += [_agreement(f"agreement of {each.judge} with itself", "replies", each.rows) for each in agreement.within]
    return [*blocks, _verdicts(found), Items(_remarks(found))]


def _agreement(title: str, units: str, rows: Sequence[Agreement]) -> Table:
    """One table of agreement; how many units there are stands in its title where that is the same for all rows."""
    counts = {row.n for row in rows}
    alike = f", n = {counts.pop():,} {units}" if len(counts) == 1 else ""
    header = ("", *(() if alike else ("n",)), "Krippendorff's alpha", "raw", "Gwet's AC2")
    cells = [(_plain(row.name), *(() if alike else (count(row.n),)), *_figures(row)) for row in rows]
    return Table(f"{title}{alike}", header, cells)


def _scores(found: Judging) -> Table:
    several = any(row.pass_index for row in found.passes)
    title = f"mean scores by judge and pass, rubric {', '.join(found.rubrics)} (Q: the sum, 0 when flagged)"
    header = ("judge", *(("pass",) if several else ()), *_score_heads(found))
    rows = [
        (
            row.judge,
            *((str(row.pass_index),) if several else ()),
            *_means(row, found),
        )
        for row in found.passes
    ]
    return Table(title, header, rows)


def _score_heads(found: Judging) -> tuple[str, ...]:
    flag = ("flagged",) if FLAG in found.scales else ()
    return (*map(_plain, found.dimensions), "Q", *flag, "marks")


def _means(row: PassScores, found: Judging) -> Iterable[str]:
    yield from (number(row.scores[name], 2) for name in found.dimensions)
    yield number(row.quality, 2)
    if FLAG in found.scales:
        yield percent(row.flagged)
    yield _marks(row)


def _verdicts(found: Judging) -> Table:
    """The panel's means, the lowest Q first; replies that nobody could judge before all others."""
    rows = sorted(found.verdicts, key=lambda row: -1.0 if row.quality is None else row.quality)
    what = "" if len(rows) <= _SHOWN else f", {_SHOWN} of {len(rows):,}"
    title = f"the panel's verdicts: means over the marks, lowest Q first{what}"
    return Table(title, ("case", *_score_heads(found)), [tuple(_verdict(row, found)) for row in rows[:_SHOWN]])


def _verdict(row: PanelVerdict, found: Judging) -> Iterable[str]:
    yield row.case_id if row.reply == "reply" else f"{row.case_id} {row.reply}"
    yield from (number(row.means.get(name), 2) for name in found.dimensions)
    yield number(row.quality, 2)
    if FLAG in found.scales:
        yield percent(row.flag)
    yield _marks(row)


def _marks(row: PassScores | PanelVerdict) -> str:
    """How many marks are there, and of how many where some are missing."""
    return f"{row.marks:,} of {row.marks + sum(row.missing.values()):,}" if row.missing else count(row.marks)


def _figures(row: Agreement) -> tuple[str, ...]:
    alpha = f"- ({row.why})" if row.alpha.value is None else _figure(row.alpha)
    return (alpha, _figure(row.raw), _figure(row.ac2))


def _figure(figure: Figure) -> str:
    if figure.value is None:
        return "-"
    if figure.interval is None:
        return f"{figure.value:.2f}"
    return f"{figure.value:.2f} [{figure.interval[0]:.2f}, {figure.interval[1]:.2f}]"


def _remarks(found: Judging) -> list[str]:
    models = {row.judge: row.model or "no usable reply" for row in found.passes}
    remarks = ["; ".join(f"{judge}: {model}" for judge, model in models.items())]
    gone: dict[str, Counter[str]] = {}
    for row in found.passes:
        gone.setdefault(row.judge, Counter()).update(row.missing)
    remarks += [f"missing marks of {judge}: {_counted(kinds)}" for judge, kinds in gone.items() if kinds]
    agreements = [*found.consistency.between, *(row for each in found.consistency.within for row in each.rows)]
    if agreements:
        remarks.append(_LEGEND)
    independent = max((row.clusters for row in agreements), default=0)
    if agreements and independent < _FEW_CLUSTERS:
        remarks.append(f"{independent} independent cases: below about {_FEW_CLUSTERS} the intervals are too narrow")
    if found.consistency.between and (same := _same_model(found.passes)):
        remarks.append(f"{same} are the same model: that they agree says no more than that its passes do")
    return remarks


def _same_model(passes: Sequence[PassScores]) -> str:
    """The judges on the model that most of them have; empty when no two have one in common."""
    judges: dict[str, dict[str, None]] = {}
    for row in passes:
        if row.model:
            judges.setdefault(row.model, {})[row.judge] = None
    most = max(judges.values(), key=len, default={})
    return " and ".join(most) if len(most) > 1 else ""


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {n:,}" for kind, n in counts.items())


def _plain(name: str) -> str:
    return name.replace("_", " ")
