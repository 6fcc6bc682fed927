"""`moot judge`: a panel of judges on replies that were given elsewhere, and how far the judges agree."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moot.deploy.cli import options

if TYPE_CHECKING:
    from moot.deploy.running.outcome import Run
    from moot.deploy.running.prepare import Prepared


def judge(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="Replies as JSON Lines or CSV, - for standard input, or sample-replies.")],
    rubric: Annotated[str, typer.Option(help="reasoning, factual, or a YAML file.")] = "reasoning",
    passes: Annotated[int, typer.Option(min=1, max=20, help="How often each judge reads each reply.")] = 1,
    model: options.Model = None,
    role: Annotated[list[str] | None, typer.Option(help="judge=MODEL[,MODEL...]: the panel.")] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many replies.")] = None,
    seed: options.Seed = None,
    out: Annotated[
        str | None, typer.Option(help="The record's folder; by default in runs/, from file, rubric, seed and model.")
    ] = None,
    prompts: options.Prompts = None,
    placement: options.PlacementName = None,
    engine: options.EngineName = None,
    address: options.Address = None,
    cluster: options.Cluster = None,
    save_tokens: options.SaveTokens = None,
    save_reasoning: options.SaveReasoning = None,
    reuse: options.Reuse = None,
    max_open: Annotated[int | None, typer.Option(help="Most replies under judgment at once (default: 200).")] = None,
    structured: options.Structured = None,
    temperature: options.Temperature = None,
    max_reply_tokens: options.MaxReplyTokens = None,
    concurrency: options.Concurrency = None,
    requests_per_min: options.RequestsPerMin = None,
    tokens_per_min: options.TokensPerMin = None,
    max_cost_usd: options.MaxCostUsd = None,
    max_tokens: options.MaxTokens = None,
    max_minutes: options.MaxMinutes = None,
    prices: options.Prices = None,
    retry_failed: options.RetryFailed = None,
    form: options.Form = "text",
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
    log_level: options.LogLevel = "warning",
) -> None:
    """Have judges score replies under a rubric, and show how far they agree; the same command again goes on."""
    from moot.actors.log import configure_terminal
    from moot.deploy.reading.text import check_format

    configure_terminal(log_level)
    check_format(form)
    flags = options.fields_of({**context.params, "set_": None})
    prepared = _prepared(file, rubric, passes, flags)
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
    from moot.deploy.running.plan_calls import plan

    asyncio.run(check_models(prepared, network=False))
    warn(prepared)
    print("\n".join(plan(prepared).lines()))


def _hold(prepared: Prepared, form: str, *, quiet: bool) -> int:
    from moot.deploy.cli.run import hold_visibly, read_at, shown, tell, tell_interrupted
    from moot.deploy.reading.summaries.judged import judging
    from moot.deploy.reading.summaries.judged_show import show_judging

    done = hold_visibly(prepared, quiet=quiet)
    if done.status == "interrupted":
        return tell_interrupted(done, prepared)
    tell(done, prepared, quiet=quiet)
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
