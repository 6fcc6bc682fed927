"""Reports of the calibrations of the gate and of early stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Console

from moot.deploy.results.report.blocks import Block, Code, Heading, Note, Table
from moot.deploy.results.report.render import show_report
from moot.deploy.results.stats import paired_words
from moot.deploy.results.text import Interval, count, number, percent, times
from moot.deploy.studies.calibration.early_stop import EarlySignal, EarlyStopCalibration
from moot.deploy.studies.calibration.epsilon import EpsilonChoice, EpsilonPoint
from moot.deploy.studies.calibration.gate import GateCalibration, GridPoint, HeldOutPoint, best_by_skip_rate

_ROWS = 12
_SWEEP = "validation cases: the most accurate setting at each skip rate"
_STOPPING = "where debates stop: when D moves by less than epsilon"
_SIGNALS = {"d": "D", "m": "M", "p": "p", "c": "c"}
_GRID_HEADER = ("tau_d", "tau_m", "tau_p", "skipped", "accuracy", "on skipped", "cost / debate", "cost / single")
_HELD_OUT_HEADER = ("", "skipped", "accuracy", "on skipped", "cost / debate", "against always debating")
_STOPPING_HEADER = ("epsilon", "cases", "rounds", "accuracy of the vote", "cost / as run", "against the run's")
_PREDICTOR_HEADER = ("signal", "read as", "AUROC", "n", "errors")


def show_calibration(found: GateCalibration, form: str = "text", console: Console | None = None) -> None:
    """Shows a gate calibration on the console."""
    show_report(found, lambda: _blocks(found), form, console)


def _tau(value: float | None) -> str:
    return "off" if value is None else number(value, 4)


def _grid_cells(point: GridPoint) -> tuple[str, ...]:
    return (
        *map(_tau, (point.tau_d, point.tau_m, point.tau_p)),
        percent(point.skip_rate),
        percent(point.accuracy),
        percent(point.accuracy_skipped) if point.n_skipped else "-",
        times(point.cost_vs_debate),
        times(point.cost_vs_single),
    )


def _held_out_cells(name: str, found: HeldOutPoint) -> tuple[str, ...]:
    point = found.point
    skipped = percent(point.accuracy_skipped, found.accuracy_skipped_interval, point.n_skipped)
    return (
        name,
        percent(point.skip_rate),
        percent(point.accuracy, found.accuracy_interval),
        skipped if point.n_skipped else "-",
        times(point.cost_vs_debate),
        paired_words(found.vs_debate),
    )


def _held_out_rows(found: GateCalibration) -> list[tuple[str, ...]]:
    debate = percent(found.debate_accuracy.value, found.debate_accuracy.interval)
    never = percent(found.skip_accuracy.value, found.skip_accuracy.interval)
    own = [] if found.as_run is None else [_held_out_cells("the run's own thresholds", found.as_run)]
    return [
        _held_out_cells("the chosen thresholds", found.held_out),
        *own,
        ("always debating", "0.0 %", debate, "-", "1.00x", "-"),
        ("never debating", "100.0 %", never, never, "-", "-"),
    ]


def _stopping_rows(found: EpsilonChoice) -> list[tuple[str, ...]]:
    def cells(point: EpsilonPoint, side: str, interval: Interval | None, against: str) -> tuple[str, ...]:
        rounds, accuracy = number(point.rounds, 2), percent(point.accuracy, interval)
        return (number(point.epsilon, 4), side, rounds, accuracy, times(point.cost_vs_run), against)

    return [
        *(cells(point, str(found.n_validation), None, "-") for point in found.grid),
        cells(found.held_out, f"{found.n_held_out} held-out", found.held_out_interval, paired_words(found.vs_run)),
        cells(found.as_run, f"{found.n_held_out} held-out", found.as_run_interval, "-"),
    ]


def _stopping_rule(found: EpsilonChoice) -> str:
    smaller = (
        " A value below the run's cannot be evaluated from its record: for that, run with --set debate.epsilon=0."
        if found.run_epsilon
        else ""
    )
    return (
        f"Chosen: epsilon {number(found.chosen.epsilon, 4)}, the cheapest whose vote on the validation cases is within "
        f"the same tolerance of the run's ({number(found.run_epsilon, 4)}). It was chosen separately, also over the "
        "debates that the chosen thresholds skip: the two were not evaluated together, and each may cost the "
        f"tolerance. To use it: --set debate.epsilon={found.chosen.epsilon:g}.{smaller}"
    )


def _shown_points(found: GateCalibration) -> list[GridPoint]:
    """Best points by skip rate, reduced to about `_ROWS` points with both ends and the chosen point."""
    points = [point for point in best_by_skip_rate(found.grid) if point.n_skipped != found.chosen.n_skipped]
    step = -(-len(points) // _ROWS) or 1
    kept = [point for i, point in enumerate(points) if i % step == 0 or point == points[-1]]
    return sorted([*kept, found.chosen], key=lambda each: each.skip_rate)


def left_out_words(left_out: Mapping[str, int]) -> str:
    """Excluded items by reason, as the end of a sentence; empty without any.

    >>> left_out_words({"cannot be scored": 2, "failed": 1})
    '; left out: 2 cannot be scored, 1 failed'
    """
    return f"; left out: {', '.join(f'{n} {why}' for why, n in left_out.items())}" if left_out else ""


def _blocks(found: GateCalibration) -> Iterator[Block]:
    yield Heading("Calibration of the gate", 1)
    yield from (Note(warning, "warning") for warning in found.warnings)
    yield Note(
        f"{found.n_validation} validation and {found.n_held_out} held-out cases of {found.run} (seed {found.seed}"
        f"{left_out_words(found.left_out)}), encoder {found.encoder}"
    )
    yield Table(_SWEEP, _GRID_HEADER, [_grid_cells(each) for each in _shown_points(found)])
    yield Note(
        f"Chosen: the cheapest of {count(len(found.grid))} settings whose accuracy on the validation cases is at most "
        f"{100 * found.tolerance:g} points below always debating ({percent(found.debate_accuracy_validation)})."
    )
    yield Table("", _GRID_HEADER, [_grid_cells(found.chosen)])
    yield Table("held-out cases", _HELD_OUT_HEADER, _held_out_rows(found))
    rows = [(_SIGNALS[e.name], e.direction, number(e.auroc), str(e.n), str(e.errors)) for e in found.predictors]
    yield Table("signals as predictors of a wrong answer when skipping", _PREDICTOR_HEADER, rows)
    if found.stopping is not None:
        yield Table(_STOPPING, _STOPPING_HEADER, _stopping_rows(found.stopping))
        yield Note(_stopping_rule(found.stopping))
    yield Note("to use the chosen thresholds:")
    yield Code(found.set_line)


def show_early_stop(found: EarlyStopCalibration, form: str = "text", console: Console | None = None) -> None:
    """Shows a calibration of early stop on the console."""
    show_report(found, lambda: _signal_blocks(found), form, console)


def _signal_blocks(found: EarlyStopCalibration) -> Iterator[Block]:
    yield Heading("Early signals of wrong answers", 1)
    yield from (Note(warning, "warning") for warning in found.warnings)
    yield Note(
        f"replies of `{found.role}` in {found.run} (seed {found.seed}, {100 * found.share:g} % of them to stop"
        f"{left_out_words(found.left_out)})"
    )
    for signal in found.signals:
        yield Table(_signal_title(signal), ("", "validation cases", "held-out cases"), _signal_rows(signal))
        if signal.role_yaml:
            yield Note(f"to use it, under the role `{found.role}` in YAML:")
            yield Code(signal.role_yaml)


def _signal_title(signal: EarlySignal) -> str:
    temperature = "its default temperature" if signal.temperature is None else f"temperature {signal.temperature:g}"
    stage = {"raw": ", before its schemas' masks", "masked": ", after its schemas' masks"}.get(signal.stage, "")
    return f"{signal.model} at {temperature}{stage}"


def _signal_rows(signal: EarlySignal) -> list[tuple[str, str, str]]:
    rows = [("replies", str(signal.n_learning), f"{signal.n_held_out}, {signal.n_known} of them long enough")]
    stop = signal.early_stop
    if stop is None:
        return [*rows, ("signal", "none: too few replies, or all right or all wrong", "-")]
    errors = (signal.error_stopped, signal.error_kept)
    difference = None if errors[0] is None or errors[1] is None else errors[0] - errors[1]
    confident = "higher, more errors" if stop.keep == "below" else "lower, more errors"
    return [
        *rows,
        ("signal", f"{stop.statistic} of the first {stop.window} tokens: {confident}", "the same"),
        ("AUROC for a wrong answer", number(signal.auroc_learning), _with(signal.auroc, signal.auroc_interval)),
        ("stopped", f"unless {stop.keep} {stop.bound:g}", percent(signal.share_stopped)),
        ("wrong among those stopped", "", percent(signal.error_stopped)),
        ("wrong among the others", "", percent(signal.error_kept)),
        ("their difference", "", _with(difference, signal.difference_interval)),
    ]


def _with(value: float | None, interval: Interval | None) -> str:
    ends = "" if interval is None else f" [{interval[0]:z.3f}, {interval[1]:z.3f}]"
    return number(value) + ends
