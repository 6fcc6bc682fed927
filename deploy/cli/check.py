"""`moot check`: one claim against documents and pictures, checked now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moot.deploy.cli import options

if TYPE_CHECKING:
    from moot.deploy.running.prepare import Prepared


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

    flags = options.here(context.obj)
    said = _from_standard_input() if claim == "-" else claim
    raise typer.Exit(_hold(_prepared(said, image or [], flags), form, quiet=quiet))


def _from_standard_input() -> str:
    from moot.protocols.errors import ConfigError

    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise ConfigError("the claim on standard input is not UTF-8 text") from None


def _prepared(claim: str, images: list[str], flags: dict[str, Any]) -> Prepared:
    from moot.deploy.checking.check import PROTOCOL, claim_case, in_its_own_folder
    from moot.deploy.running.config import RunConfig
    from moot.deploy.running.flags import flag_of
    from moot.deploy.running.prepare import prepare

    case = claim_case(claim, images)
    config = RunConfig.build(None, {**flags, "protocol": PROTOCOL}, flag_of)
    prepared = prepare(config, task=[case])
    return in_its_own_folder(prepared) if config.out is None else prepared


def _hold(prepared: Prepared, form: str, *, quiet: bool) -> int:
    from moot.deploy.checking.checked import read_checked
    from moot.deploy.checking.show import show_checked
    from moot.deploy.cli.run import hold_and_tell, read_at

    done = hold_and_tell(prepared, quiet=quiet)
    if done.status != "finished":
        return done.exit_code
    checked = read_checked(read_at(prepared))
    if checked is None:
        return done.exit_code
    show_checked(checked, form)
    return checked.exit_code
