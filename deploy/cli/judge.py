"""`moot judge`: scores of existing replies by a panel of judges, and the judges' agreement."""

from __future__ import annotations

from typing import Annotated

import typer

from moot.deploy.cli import generated_flags, options

Command = generated_flags.run_options(
    *("protocol", "preset", "task", "agents", "encoder", "docs", "classifier", "set", "attended", "debate_timeout_s"),
    roles="judge=MODEL[,MODEL...]: the panel.",
    limit="Judge only the first N replies.",
    max_open="Maximum number of replies judged at once (default: 200).",
    out="The record's folder; by default in runs/, from file, rubric, seed and model.",
)


def judge(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="Replies as JSON Lines or CSV, - for standard input, or sample-replies.")],
    rubric: Annotated[str, typer.Option(help="reasoning, factual, or a YAML file.")] = "reasoning",
    passes: Annotated[int, typer.Option(min=1, max=20, help="Passes of each judge over each reply.")] = 1,
    form: options.Form = "text",
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
) -> None:
    """Score replies with judges under a rubric, and show the judges' agreement. The same command resumes the run."""
    from moot.deploy.cli.console import (
        build_run_config,
        folder_as_given,
        print_next_commands,
        readable_folder,
        run_and_report,
    )
    from moot.deploy.cli.protocol_runs import show_plans
    from moot.deploy.results.figures.judges import show_judging, summarise_judging
    from moot.deploy.results.text import shell_path
    from moot.deploy.runs.judge import PROTOCOL, default_judge_out, replies_spec, rubric_of
    from moot.deploy.runs.outcome import EXIT_SOME_FAILED
    from moot.deploy.runs.prepare import prepare
    from moot.protocols.errors import ConfigError, TaskFileError
    from moot.protocols.tasks.replies import COLUMNS as REPLY_COLUMNS

    sheet = rubric_of(rubric)
    settings = {"rubric": sheet.model_dump(mode="json"), "passes": passes}
    config = build_run_config(context.obj, protocol=PROTOCOL, task=replies_spec(file), set=settings)
    if config.out is None:
        config = config.model_copy(update={"out": default_judge_out(file, sheet, config.seed, config.model)})
    try:
        prepared = prepare(config)
    except TaskFileError as error:
        if error.field not in REPLY_COLUMNS:
            raise
        hint = f"moot judge scores replies; to debate cases use `moot run --task {shell_path(file)}`"
        raise ConfigError(f"{error}; {hint}") from None
    if dry_run:
        show_plans([prepared])
        return
    done = run_and_report(prepared, quiet=quiet)
    where = folder_as_given(prepared)
    summary = summarise_judging(readable_folder(prepared))
    if summary is None and done.done and not done.exit_code:
        unreadable = f"{done.done:,} verdicts but no readable assessment: judge again with --out NEW"
        typer.echo(f"error: {where} has {unreadable}", err=True)
        raise typer.Exit(EXIT_SOME_FAILED)
    if summary is not None:
        show_judging(summary, form)
        if form == "text":
            command = f"moot show {shell_path(where)}"
            figures = (command, "these figures and their cost, again")
            print_next_commands([figures, (f"{command} CASE", "each judge's scores of one reply")])
    raise typer.Exit(done.exit_code)
