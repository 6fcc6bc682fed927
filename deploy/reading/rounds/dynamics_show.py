"""A run's debates round by round, as text, Markdown or JSON."""

from __future__ import annotations

from rich.console import Console

from moot.deploy.reading.report.blocks import Block, Heading, Note, Table
from moot.deploy.reading.report.render import banner, show_report
from moot.deploy.reading.rounds.dynamics import Change, Dynamics
from moot.deploy.reading.rounds.measures import BY_KEY, Measure
from moot.deploy.reading.rounds.over_cases import LEAST_CASES, Measured
from moot.deploy.reading.rounds.truth import CONSENSUS, MIXTURE, Truth
from moot.deploy.reading.text import number

_HEADER = ["", "round", "mean", "95 % interval", "cases", "change"]


def _note(found: Dynamics) -> str:
    """What the means are over, of what there is to be seen."""
    said = [f"Means over the cases that have the round, with bootstrap intervals over {LEAST_CASES} cases or more."]
    if len(found.rounds) > 1:
        said.append("Later rounds are of the debates that had not ended.")
    if found.changes:
        said.append("The change from first to last is of each debate's own rounds; in per cent of the mean at first.")
    return " ".join(said)


def _rows(found: Dynamics) -> list[list[str]]:
    """By measure: its mean in each round, then its change from first to last."""
    rows = []
    for key in found.rounds[0].measured:
        measure = BY_KEY[key]
        for place, each in enumerate(found.rounds):
            name = measure.heading if place == 0 else ""
            rows.append([name, str(each.round), *_measured(measure, each.measured[key]), ""])
        if (change := found.changes.get(key)) is not None:
            rows.append(["", "first to last", *_measured(measure, change.by_case, signed=True), _percent(change)])
    return rows


def _measured(measure: Measure, found: Measured, *, signed: bool = False) -> list[str]:
    mean = None if found.mean is None else measure.times * found.mean
    shown = _signed(mean, measure.digits) if signed else number(mean, measure.digits)
    return [shown, _ends(found, measure.times, measure.digits), f"{found.cases:,}"]


def _percent(change: Change) -> str:
    return "" if change.percent is None else f"{change.percent:+.0f} %"


_TRUTH_HEADER = ["round", "of", "accuracy, %", "Brier (0 to 2)", "95 % interval", "KL to truth, nat", "cases"]
_WEIGHTED_BY = {MIXTURE: "reliability", CONSENSUS: "CRIT"}


def _truth_note(found: Dynamics) -> str:
    held = [each for truth in found.truth for each in truth.held]
    shown = {each.of for each in held}
    together = [f"the {of} is weighted by {what}" for of, what in _WEIGHTED_BY.items() if of in shown]
    weighted = f": {', '.join(together)}" if together else ""
    infinite = any(each.kl_infinite for each in held)
    finite = " KL to the truth is a mean over finite ones; +n cases are infinite." if infinite else ""
    return f"Held against the gold labels{weighted}.{finite}"


def _truth_rows(found: Dynamics) -> list[list[str]]:
    rows = []
    for truth in found.truth:
        for place, each in enumerate(truth.held):
            when = truth.when if place == 0 else ""
            kl = number(each.kl) + (f" +{each.kl_infinite}" if each.kl_infinite else "")
            brier = [number(each.brier.mean), _ends(each.brier)]
            rows.append([when, each.of, number(100.0 * each.accuracy, 1), *brier, kl, f"{truth.cases:,}"])
    return rows


def _truth_words(found: Dynamics) -> list[str]:
    """What the sides say together, beside the better of them, or the best of several."""
    return [
        f"{truth.when} round, {of}: Brier {_signed(over.mean)} ({_interval(over)}) against the {_better(truth)} side, "
        f"{truth.better}; below every side's in {number(100.0 * truth.beats_all[of], 1)} % of the cases"
        for truth in found.truth
        for of, over in truth.over_better.items()
    ]


def _ends(found: Measured, times: float = 1.0, digits: int = 3) -> str:
    if found.low is None or found.high is None:
        return number(None)
    return f"{number(times * found.low, digits)} to {number(times * found.high, digits)}"


def _better(truth: Truth) -> str:
    return "better" if len(truth.held) - len(truth.over_better) == 2 else "best"


def _interval(found: Measured) -> str:
    return "interval unknown" if found.low is None else _ends(found)


def _signed(value: float | None, digits: int = 3) -> str:
    return f"{'+' if value is not None and value > 0.0 else ''}{number(value, digits)}"


def show_dynamics(found: Dynamics, form: str = "text", console: Console | None = None) -> None:
    """Write the rounds to the console.

    Raises:
        ConfigError: for an unknown format.
    """
    show_report(found, lambda: dynamics_blocks(found), form, console)


def dynamics_blocks(found: Dynamics) -> list[Block]:
    """The rounds, and what the sides are worth in them."""
    head = [*banner(found.simulated), Heading(f"Round by round: {found.run}", 1), Note(_note(found))]
    blocks: list[Block] = [*head, Table("", _HEADER, _rows(found))]
    if found.truth:
        blocks += [Note(_truth_note(found)), Table("", _TRUTH_HEADER, _truth_rows(found))]
    return blocks + [Note(line) for line in _truth_words(found)]
