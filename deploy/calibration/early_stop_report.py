"""Shows what was learned of early signals: on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.text import Text

from moot.deploy.calibration.early_stop import EarlySignal, EarlyStopCalibration
from moot.deploy.calibration.report import left_out_words, table
from moot.deploy.reading.text import (
    Interval,
    emit,
    markdown_block,
    markdown_inline,
    markdown_table,
    number,
    percent,
    safe_json,
    visible_line,
)

_HEADER = ("", "learned from", "held-out cases")


def show_early_stop(found: EarlyStopCalibration, form: str = "text", console: Console | None = None) -> None:
    """Write what was learned to the console."""
    emit(
        form,
        text=lambda: early_stop_text(found),
        json=lambda: safe_json(found),
        md=lambda: early_stop_markdown(found),
        console=console,
    )


def early_stop_text(found: EarlyStopCalibration) -> RenderableType:
    """What was learned, for a terminal."""
    parts: list[RenderableType] = [Text(warning, style="bold yellow") for warning in found.warnings]
    parts.append(Text(visible_line(_head(found))))
    for signal in found.signals:
        parts.append(table(_title(signal), _HEADER, _rows(signal)))
        if signal.role_yaml:
            parts.append(Text(f"to use it, under the role `{found.role}` in YAML:"))
            parts.append(Text(signal.role_yaml, style="bold", no_wrap=True, overflow="ignore"))
    return Group(*parts)


def early_stop_markdown(found: EarlyStopCalibration) -> str:
    """The same as Markdown."""
    blocks = ["# Early signals of wrong answers"]
    blocks += [f"**{markdown_inline(warning)}**" for warning in found.warnings]
    blocks.append(markdown_inline(_head(found)))
    for signal in found.signals:
        blocks += [f"## {markdown_inline(_title(signal))}", markdown_table(_HEADER, _rows(signal))]
        if signal.role_yaml:
            blocks += [f"To use it, under the role `{found.role}` in YAML:", markdown_block(signal.role_yaml)]
    return "\n\n".join(blocks) + "\n"


def _head(found: EarlyStopCalibration) -> str:
    return (
        f"replies of `{found.role}` in {found.run} (seed {found.seed}, {100 * found.share:g} % to be stopped"
        f"{left_out_words(found.left_out)})"
    )


def _title(signal: EarlySignal) -> str:
    temperature = "its default temperature" if signal.temperature is None else f"temperature {signal.temperature:g}"
    stage = {"raw": ", before its schemas' masks", "masked": ", after its schemas' masks"}.get(signal.stage, "")
    return f"{signal.model} at {temperature}{stage}"


def _rows(signal: EarlySignal) -> list[tuple[str, str, str]]:
    rows = [("replies", str(signal.n_learning), f"{signal.n_held_out}, {signal.n_known} of them long enough")]
    stop = signal.early_stop
    if stop is None:
        return [*rows, ("signal", "none: too few replies, or all right or all wrong", "-")]
    confident = "higher, more errors" if stop.keep == "below" else "lower, more errors"
    return [
        *rows,
        ("signal", f"{stop.statistic} of the first {stop.window} tokens: {confident}", "the same"),
        ("AUROC for a wrong answer", number(signal.auroc_learning), _with(signal.auroc, signal.auroc_interval)),
        ("stopped", f"not {stop.keep} {stop.bound:g}", percent(signal.share_stopped)),
        ("wrong among those stopped", "", percent(signal.error_stopped)),
        ("wrong among the others", "", percent(signal.error_kept)),
        ("their difference", "", _with(_difference(signal), signal.difference_interval)),
    ]


def _difference(signal: EarlySignal) -> float | None:
    if signal.error_stopped is None or signal.error_kept is None:
        return None
    return signal.error_stopped - signal.error_kept


def _with(value: float | None, interval: Interval | None) -> str:
    ends = "" if interval is None else f" [{interval[0]:.3f}, {interval[1]:.3f}]"
    return number(value) + ends
