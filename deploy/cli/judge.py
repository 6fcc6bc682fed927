"""`moot judge`: a panel of judges on replies that were given elsewhere, and how far the judges agree."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moot.deploy.cli import options

if TYPE_CHECKING:
    from moot.deploy.running.outcome import Run
    from moot.deploy.running.prepare import Prepared


Command = options.of_a_run(
    *("protocol", "preset", "task", "agents", "encoder", "docs", "classifier", "set", "attended", "debate_timeout_s"),
    roles="judge=MODEL[,MODEL...]: the panel.",
    limit="Only the first so many replies.",
    max_open="Most replies under judgment at once (default: 200).",
    out="The record's folder; by default in runs/, from file, rubric, seed and model.",
)


def judge(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="Replies as JSON Lines or CSV, - for standard input, or sample-replies.")],
    rubric: Annotated[str, typer.Option(help="reasoning, factual, or a YAML file.")] = "reasoning",
    passes: Annotated[int, typer.Option(min=1, max=20, help="How often each judge reads each reply.")] = 1,
    form: options.Form = "text",
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
) -> None:
    """Have judges score replies under a rubric, and show how far they agree; the same command again goes on."""

    prepared = _prepared(file, rubric, passes, context.obj)
    if dry_run:
        _plan(prepared)
        return
    raise typer.Exit(_hold(prepared, form, quiet=quiet))


def _prepared(file: str, rubric: str, passes: int, flags: dict[str, Any]) -> Prepared:
    from moot.deploy.running.config import RunConfig
    from moot.deploy.running.flags import flag_of
    from moot.deploy.running.judge import PROTOCOL, judge_out, replies_spec, rubric_of
    from moot.deploy.running.prepare import prepare

    chosen = rubric_of(rubric)
    flags |= {
        "protocol": PROTOCOL,
        "task": replies_spec(file),
        "set": {"rubric": chosen.model_dump(mode="json"), "passes": passes},
    }
    config = RunConfig.build(None, flags, flag_of)
    if config.out is None:
        config = config.model_copy(update={"out": judge_out(file, chosen, config.seed, config.model)})
    return prepare(config)


def _plan(prepared: Prepared) -> None:
    import asyncio

    from moot.deploy.running.caveats import warn
    from moot.deploy.running.checks import check_models
    from moot.deploy.running.dry_run import plan

    asyncio.run(check_models(prepared, network=False))
    warn(prepared)
    print("\n".join(plan(prepared).lines()))


def _hold(prepared: Prepared, form: str, *, quiet: bool) -> int:
    from moot.deploy.cli.run import hold_and_tell, read_at, shown
    from moot.deploy.reading.summaries.judged import judging, show_judging

    done = hold_and_tell(prepared, quiet=quiet)
    where = shown(prepared)
    found = judging(read_at(prepared))
    if found is None:
        return _nothing_to_show(done, where)
    show_judging(found, form)
    if form == "text":
        print(f"\nnext:\n  moot show {where}  these figures and what they cost, again")
        print(f"  moot show {where} CASE  what each judge said of one reply")
    return done.exit_code


def _nothing_to_show(done: Run, where: str) -> int:
    """Say so where replies have verdicts and no assessment can be read; the exit code is never 0 then."""
    from moot.deploy.running.outcome import EXIT_SOME_FAILED

    if done.exit_code or not done.done:
        return done.exit_code
    print(
        f"error: {where} has {done.done:,} verdicts and no assessment that can be read: judge again with --out NEW",
        file=sys.stderr,
    )
    return EXIT_SOME_FAILED
