"""`moot check`: one claim against documents and pictures, checked now."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from moot.deploy.cli import options

Command = options.of_a_run(
    *options.OF_MANY_CASES,
    "protocol",
    "agents",
    roles="debater=A,B, judge=MODEL or vision=MODEL; repeatable.",
    out="The record's folder; by default in runs/, from claim, files, seed and model.",
    engine=options.HERE,
)


def check(
    context: typer.Context,
    claim: Annotated[str, typer.Argument(help="The claim, or - for standard input.", show_default=False)],
    image: Annotated[list[str] | None, typer.Option(help="A PNG, JPEG or WebP picture; repeatable.")] = None,
    form: options.Form = "text",
    quiet: options.Quiet = False,
) -> None:
    """Check one claim: label, confidence, evidence with its place, and the debate. Exit codes: 0 supported,
    5 hallucinated, 6 undecided."""
    from moot.deploy.checking.check import PROTOCOL, claim_case, in_its_own_folder
    from moot.deploy.checking.checked import read_checked
    from moot.deploy.checking.show import show_checked
    from moot.deploy.cli.run import configured, hold_and_tell, read_at
    from moot.deploy.running.prepare import prepare

    case = claim_case(_from_standard_input() if claim == "-" else claim, image or [])
    config = configured(options.here(context.obj), protocol=PROTOCOL)
    prepared = prepare(config, task=[case])
    if config.out is None:
        prepared = in_its_own_folder(prepared)
    done = hold_and_tell(prepared, quiet=quiet)
    checked = read_checked(read_at(prepared)) if done.status == "finished" else None
    if checked is None:
        raise typer.Exit(done.exit_code)
    show_checked(checked, form)
    raise typer.Exit(checked.exit_code)


def _from_standard_input() -> str:
    from moot.protocols.errors import ConfigError

    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise ConfigError("the claim on standard input is not UTF-8 text") from None
