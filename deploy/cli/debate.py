"""`moot debate`: a single debate, unattended or moderated by the person at the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moot.deploy.cli import generated_flags, options

if TYPE_CHECKING:
    from moot.deploy.runs.prepare import Prepared

DEFAULT_PROTOCOL = "socrasynth"

Command = generated_flags.run_options(
    *generated_flags.MULTI_CASE_FIELDS,
    "docs",
    "classifier",
    protocol="A protocol (default: socrasynth), or module:Class.",
    out="The record's folder; by default in runs/, from protocol, subject and seed.",
    engine=generated_flags.ENGINE_HELP,
)


def debate(
    context: typer.Context,
    subject: Annotated[str, typer.Argument(help="Subject or question of the debate.", show_default=False)],
    interactive: Annotated[
        bool,
        typer.Option("--interactive", "-i", help="Moderate at this terminal, where the protocol asks a person."),
    ] = False,
    facts: Annotated[
        Path | None, typer.Option("--facts", "--passage", help="A text file with facts for the debate.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Possible answers, separated by commas (default: a free-text answer).")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Start another debate of the same subject.")] = False,
    form: options.Form = "text",
    quiet: options.Quiet = False,
) -> None:
    """Debate one subject and show the transcript. The same command again resumes it, or shows it again."""
    from moot.actors.record.store.uri import is_uri
    from moot.deploy.cli.console import readable_folder, run_and_report
    from moot.deploy.cli.moderation.terminal import run_moderated
    from moot.deploy.results.show import show
    from moot.deploy.runs.single_debate import CASE_ID
    from moot.protocols.errors import ConfigError

    flags = generated_flags.inline_options(context.obj)
    out = flags["out"]
    if interactive and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            "--interactive needs a terminal as standard input and standard error; without one leave it out, or use "
            "`moot run --attended` and `moot decide`"
        )
    if interactive and out is not None and is_uri(out):
        raise ConfigError(f"--interactive reads the debate while it runs: --out {out} must be a folder")
    if new and out is not None:
        raise ConfigError("--new chooses the folder: leave out --new or --out")
    flags["protocol"] = flags["protocol"] or (DEFAULT_PROTOCOL if flags["preset"] is None else None)
    prepared = _prepared(subject, labels, facts, {**flags, "attended": interactive or None}, new=new)
    if interactive:
        done = run_moderated(prepared, quiet=quiet)
        prints = done.status == "finished" and (form != "text" or not sys.stdout.isatty())
    else:
        done, prints = run_and_report(prepared, quiet=quiet, notes_nothing_to_do=False), True
    if prints and done.table("cases").num_rows:
        show(readable_folder(prepared), CASE_ID, form=form)
    raise typer.Exit(done.exit_code)


def _prepared(question: str, labels: str | None, facts: Path | None, flags: dict[str, Any], *, new: bool) -> Prepared:
    from moot.deploy.cli.console import build_run_config
    from moot.deploy.runs.prepare import prepare
    from moot.deploy.runs.resume import check_resumable
    from moot.deploy.runs.run_folders import run_name
    from moot.deploy.runs.single_debate import Subject, default_debate_out, read_facts_file
    from moot.protocols.errors import ConfigError

    if not question.strip():
        raise ConfigError("the subject is empty")
    answers = None if labels is None else [label.strip() for label in labels.split(",")]
    if answers is not None and not all(answers):
        raise ConfigError(f"--labels {labels!r}: expected answers separated by commas, such as Yes,No")
    subject = Subject(question.strip(), read_facts_file(facts) if facts else "", answers)
    config = build_run_config(flags)
    given_out = config.out
    if given_out is None:
        out = default_debate_out(run_name(config.protocol, config.preset), subject, config.seed, config.model, new=new)
        config = config.model_copy(update={"out": out})
    prepared = prepare(config, task=[subject.case()])
    check_resumable(prepared, "--new" if given_out is None else "--out NEW")
    return prepared
