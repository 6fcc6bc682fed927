"""`moot check`: check of one claim against documents and pictures."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from moot.deploy.cli import generated_flags, options

Command = generated_flags.run_options(
    *generated_flags.MULTI_CASE_FIELDS,
    "protocol",
    "agents",
    roles="debater=A,B, judge=MODEL or vision=MODEL; repeatable.",
    out="The record's folder; by default in runs/, from claim, files, seed and model.",
    engine=generated_flags.ENGINE_HELP,
)


def check(
    context: typer.Context,
    claim: Annotated[str, typer.Argument(help="The claim, or - for standard input.", show_default=False)],
    image: Annotated[list[str] | None, typer.Option(help="A PNG, JPEG or WebP picture; repeatable.")] = None,
    form: options.Form = "text",
    quiet: options.Quiet = False,
) -> None:
    """Check one claim, and show its label, confidence, evidence with location, and debate. Exit codes: 0 supported,
    5 hallucinated, 6 undecided."""
    from moot.deploy.cli.console import build_run_config, readable_folder, run_and_report
    from moot.deploy.runs.checking.check import PROTOCOL, claim_case, with_content_folder
    from moot.deploy.runs.checking.check_result import read_checked
    from moot.deploy.runs.checking.show import show_checked
    from moot.deploy.runs.prepare import prepare

    case = claim_case(_from_standard_input() if claim == "-" else claim, image or [])
    config = build_run_config(generated_flags.inline_options(context.obj), protocol=PROTOCOL)
    prepared = prepare(config, task=[case])
    if config.out is None:
        prepared = with_content_folder(prepared)
    done = run_and_report(prepared, quiet=quiet)
    checked = read_checked(readable_folder(prepared)) if done.status == "finished" else None
    if checked is None:
        raise typer.Exit(done.exit_code)
    show_checked(checked, form)
    raise typer.Exit(checked.exit_code)


def _from_standard_input() -> str:
    from moot.protocols.errors import ConfigError
    from moot.protocols.regular_files import MOST_TEXT_BYTES

    try:
        return sys.stdin.buffer.read(MOST_TEXT_BYTES).decode()
    except UnicodeDecodeError:
        raise ConfigError("the claim on standard input is not UTF-8 text") from None
