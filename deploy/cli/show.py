"""`moot show`: a run's figures, one of its debates, or an audit of its labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from moot.deploy.cli import options


def show(
    folder: options.Folder,
    case: Annotated[str | None, typer.Argument(help="Id of a case: show its debate.")] = None,
    attempt: Annotated[
        int | None, typer.Option(help="Attempt of the case (default: the latest with a verdict).")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="With a case: also plot its rounds to this .svg or .png file; missing folders are made."),
    ] = None,
    questioned: Annotated[
        bool, typer.Option("--questioned", help="List the labels that a confident consensus contradicts.")
    ] = False,
    confidence: Annotated[
        float | None, typer.Option(help="With --questioned: minimum confidence, 0 to 1 (default: 0.8).")
    ] = None,
    crit: Annotated[
        float | None, typer.Option(help="With --questioned: minimum CRIT score, 0 to 1 (default: 0.7).")
    ] = None,
    dial: Annotated[bool, typer.Option("--dial", help="Estimate the effect of contentiousness over the run.")] = False,
    rounds: Annotated[bool, typer.Option("--rounds", help="Show figures of the run's debates by round.")] = False,
    wrong: Annotated[bool, typer.Option("--wrong", help="List the cases with a wrong answer.")] = False,
    right: Annotated[bool, typer.Option("--right", help="List the cases with the right answer.")] = False,
    debated: Annotated[bool, typer.Option("--debated", help="List the cases that were debated.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="List the cases that failed.")] = False,
    truncated: Annotated[
        bool, typer.Option("--truncated", help="List the cases with a reply truncated at its token limit.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With a case: also show each reply's path in the record.")
    ] = False,
    form: options.Form = "text",
) -> None:
    """Show a run's figures, the transcript of one debate, or the cases that match all given filters."""
    from moot.deploy.results.report.render import show_report

    _only_with("--questioned", questioned, {"--confidence": confidence, "--crit": crit})
    of_debate = {"the case": case, "--attempt": attempt, "--plot": plot, "--verbose": verbose or None}
    given = {"wrong": wrong, "right": right, "debated": debated, "failed": failed, "truncated": truncated}
    kinds = [kind for kind, wanted in given.items() if wanted]
    of_run = {"--questioned": questioned or None, "--dial": dial or None, "--rounds": rounds or None}
    if kinds:
        _not_with(f"--{kinds[0]}", of_debate | of_run, "lists cases")
        from moot.deploy.results.case_table import MOST, case_list, case_list_blocks

        cases = case_list(folder).only(*kinds)
        show_report(cases, lambda: case_list_blocks(cases, MOST if form == "text" else None), form)
    elif rounds:
        _not_with("--rounds", of_debate | {"--questioned": questioned or None, "--dial": dial or None})
        from moot.deploy.results.figures.rounds import dynamics_blocks, round_dynamics

        dynamics = round_dynamics(folder)
        show_report(dynamics, lambda: dynamics_blocks(dynamics), form)
    elif dial:
        _not_with("--dial", of_debate | {"--questioned": questioned or None})
        from moot.deploy.results.figures.contentiousness import contentiousness_blocks, contentiousness_effect

        effect = contentiousness_effect(folder)
        show_report(effect, lambda: contentiousness_blocks(effect), form)
    elif questioned:
        _not_with("--questioned", of_debate)
        from moot.deploy.results.figures.label_audit import CONFIDENCE, CRIT, label_audit_blocks
        from moot.deploy.results.figures.label_audit import audit_labels as listed

        bounds = (CONFIDENCE if confidence is None else confidence, CRIT if crit is None else crit)
        labels = listed(folder, *bounds)
        show_report(labels, lambda: label_audit_blocks(labels), form)
    else:
        from moot.deploy.results.show import show as shown

        shown(folder, case, attempt=attempt, form=form, plot=plot, verbose=verbose)


def _only_with(flag: str, given: bool, others: dict[str, Any]) -> None:
    from moot.protocols.errors import ConfigError

    used = [name for name, value in others.items() if value is not None]
    if used and not given:
        raise ConfigError(f"{used[0]} needs {flag}")


def _not_with(flag: str, others: dict[str, Any], does: str = "is about a whole run") -> None:
    from moot.protocols.errors import ConfigError

    conflicting = [name for name, value in others.items() if value is not None]
    if conflicting:
        raise ConfigError(f"{flag} {does}: leave out {conflicting[0]}")
