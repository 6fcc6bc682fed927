"""What `moot run` does: one protocol, or several one after another and a comparison at the end."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from typer import Exit

from moot.actors.debate.placement import cluster_address
from moot.actors.models.resolve import is_embedded
from moot.actors.record.tables import read_table
from moot.deploy.cli.multi_protocol import configs_by_protocol, settings_for, unused_roles
from moot.deploy.reading.report.render import show_report
from moot.deploy.reading.show import show_summary
from moot.deploy.reading.summaries.compare import compare, comparison_blocks
from moot.deploy.reading.summaries.model_replies import (
    FOLLOWED_BY,
    members_without_replies,
    model_replies,
    warnings_of,
)
from moot.deploy.reading.summaries.summary import summarise
from moot.deploy.reading.text import cases, visible_line
from moot.deploy.running.caveats import log_caveats
from moot.deploy.running.checks import TrialResults, check_models
from moot.deploy.running.config import RunConfig
from moot.deploy.running.decide import pending_forms
from moot.deploy.running.dry_run import plan
from moot.deploy.running.flags import flag_of
from moot.deploy.running.interruption import run_in_thread
from moot.deploy.running.outcome import EXIT_INTERRUPTED, Run
from moot.deploy.running.prepare import Prepared, prepare
from moot.deploy.running.progress import progress_listener
from moot.deploy.running.resume import check_resumable
from moot.deploy.running.run_library import LibraryCache
from moot.deploy.running.session import Session
from moot.protocols.errors import REPLAY_DIVERGED

_NAMED = 3
"""Waiting cases that are named."""

_LASTING = frozenset({"invalid_case", REPLAY_DIVERGED})
"""Failures that another attempt does not mend."""

_LONGEST = 300


def build_run_config(flags: Mapping[str, Any], file: Path | None = None, **fixed: Any) -> RunConfig:
    """A command's configuration: its file's, its flags over that, and what the command itself says.

    Raises:
        ConfigError: in one line, naming the flag or the key.
    """
    return RunConfig.build(file, {**flags, **fixed}, flag_of)


def execute(file: Path | None, flags: Mapping[str, Any], *, dry_run: bool = False, quiet: bool = False) -> int:
    """Do what `moot run` was told; returns the exit code.

    Raises:
        UserError: one line about what is wrong; nothing was written.
    """
    config = build_run_config(flags, file)
    names = [name.strip() for name in config.protocol.split(",")]
    runs = _prepared(config, names, quiet=quiet)
    if dry_run:
        show_plans(runs)
        return 0
    if len(runs) == 1:
        ends = [run_and_report(runs[0], quiet=quiet, summarised=True)]
        show_summary(summarise(readable_folder(runs[0])))
    else:
        for each in runs:
            check_resumable(each)
        ends = []
        for each in asyncio.run(_checked(runs, network=True)):
            print_status(f"{each.protocol.name}:", quiet=quiet)
            ends.append(run_and_report(each, quiet=quiet))
            if ends[-1].status == "stopped":
                return ends[-1].exit_code
        found = compare([readable_folder(each) for each in runs])
        show_report(found, lambda: comparison_blocks(found))
    print_next_commands(_next_commands(runs, ends))
    for done in ends:
        if done.commonest_failure:
            print(visible_line(f"most frequent failure: {done.commonest_failure}"[:_LONGEST]), file=sys.stderr)
    return max(done.exit_code for done in ends)


def _prepared(config: RunConfig, names: Sequence[str], *, quiet: bool) -> list[Prepared]:
    """The run, or one per protocol; these have their libraries beside them in one place."""
    if len(names) == 1:
        return [prepare(config.model_copy(update={"set": settings_for(names[0], names, config.set)}))]
    made = configs_by_protocol(config, names)
    for line in (line for each in made for line in unused_roles(config, each)):
        print_status(line, quiet=quiet)
    shelf = LibraryCache(Path(str(made[0].out)).parent)
    return [prepare(each, shelf=shelf) for each in made]


async def _checked(runs: Sequence[Prepared], *, network: bool) -> list[Prepared]:
    trials = TrialResults()
    return [await check_models(each, network=network, trials=trials) for each in runs]


def show_plans(runs: Sequence[Prepared]) -> None:
    """What `--dry-run` shows of checked runs."""
    asyncio.run(_checked(runs, network=False))
    for each in runs:
        log_caveats(each)
    print("\n\n".join("\n".join(plan(each).lines()) for each in runs))


def run_with_progress(prepared: Prepared, *, quiet: bool) -> Run:
    """Hold a run, its progress on stderr; the first Ctrl-C drains it, the second ends this process."""
    session = Session(prepared, progress_listener(quiet=quiet, gated=prepared.gated))
    tried = dict.fromkeys(member.model for member in prepared.members if not is_embedded(member.model))
    if tried and not prepared.record.exists():
        print_status(f"trying {', '.join(tried)} before the first debate ...", quiet=quiet)
    if prepared.config.engine == "ray" and not quiet:
        where = cluster_address(prepared.config.address)
        starting = "starting a local Ray ..." if where is None else f"joining the Ray cluster at {where} ..."
        print_status(starting, quiet=not sys.stderr.isatty())
    return run_in_thread(session, on_signals=lambda: report_stopping(session))


def run_and_report(prepared: Prepared, *, quiet: bool, tells: bool = True, summarised: bool = False) -> Run:
    """Hold a run visibly, and say what its user has to know beside the figures; see `report_outcome`.

    Raises:
        Exit: it was interrupted, which has been said.
    """
    done = run_with_progress(prepared, quiet=quiet)
    if done.status == "interrupted":
        raise Exit(report_interrupted(done, prepared))
    report_outcome(done, prepared, quiet=quiet or not tells, summarised=summarised)
    return done


def report_stopping(session: Session) -> None:
    """Say what a stop waits for."""
    what = "finishing calls under way" if session.is_running else "taking down what was being started"
    print(f"stopping: {what} ... Ctrl-C again stops now", file=sys.stderr, flush=True)


def report_interrupted(done: Run, prepared: Prepared) -> int:
    """Say how far an interrupted run came; returns the exit code."""
    how = "; the same command goes on from here" if prepared.record.exists() else "; nothing was begun or written"
    print(f"interrupted: {_progress_text(done, prepared)}{how}", file=sys.stderr)
    return EXIT_INTERRUPTED


def _progress_text(done: Run, prepared: Prepared) -> str:
    of = "" if prepared.total is None else f" of {prepared.total:,}"
    under_way = f", {done.under_way:,} under way" if done.under_way else ""
    where = f" in {folder_as_given(prepared)}" if prepared.record.exists() else ""
    return f"{done.done:,}{of} cases done{under_way}{where}"


def report_outcome(done: Run, prepared: Prepared, *, quiet: bool, summarised: bool = False) -> None:
    """What a user has to know besides the figures; `summarised` leaves out what a summary warns of."""
    if done.status == "stopped":
        told = f"stopped: {done.stopped_by}; {_progress_text(done, prepared)}"
        print(f"{told}; the same command, with what stopped it changed, goes on from here", file=sys.stderr)
    if not done.worked:
        print_status("nothing left to do: every case has ended", quiet=quiet)
    _report_failures(done)
    warnings = [] if summarised else warnings_of(model_replies(done.path))
    for member in members_without_replies(done.path):
        warnings.append(f"none of the asks of {member} got a usable reply: {FOLLOWED_BY}")
    for line in warnings:
        print(visible_line(f"warning: {line}"), file=sys.stderr)
    if done.parked:
        wait = "waits" if len(done.parked) == 1 else "wait"
        print(f"{cases(len(done.parked))} {wait} for a person:", file=sys.stderr)
        for each in [form for form in pending_forms(done.path) if form.case_id in done.parked][:_NAMED]:
            actions = visible_line(" | ".join(each.form.actions))
            print(
                f"  moot decide {folder_as_given(prepared)} {_shell_case_id(each.case_id)} {actions}", file=sys.stderr
            )


def _report_failures(done: Run) -> None:
    """Failed cases by kind with what helps."""
    rows = read_table(done.path, "verdicts", ["failure", "error"]).to_pylist()
    latest = {row["case_id"]: row for row in sorted(rows, key=lambda row: row["attempt"])}
    failed = [row for row in latest.values() if row["failure"]]
    if failed:
        kinds = Counter(row["failure"] for row in failed)
        what = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
        again = "; --retry-failed gives a new attempt" if set(kinds) - _LASTING else ""
        print(f"{cases(len(failed))} failed ({what}){again}", file=sys.stderr)
        print(visible_line(f"  {failed[0]['case_id']}: {failed[0]['error']}"[:_LONGEST]), file=sys.stderr)


def print_next_commands(commands: Iterable[tuple[str, str]]) -> None:
    """Name commands that go on from here, each with what it shows."""
    told = list(commands)
    width = max(len(command) for command, _ in told)
    print("\nnext:")
    for command, about in told:
        print(f"  {command:<{width}}  {about}")


def _next_commands(runs: Sequence[Prepared], ends: Sequence[Run]) -> list[tuple[str, str]]:
    """What to look at: of one run its figures and a debate, of several those of which no case has a verdict."""
    alone = len(runs) == 1
    commands = [] if alone else [(f"moot show {folder_as_given(runs[0])}", "the figures of one run")]
    for each, done in zip(runs, ends, strict=True):
        if (alone or done.failed == done.done) and (example := _example_case(done)) is not None:
            commands.append((f"moot show {folder_as_given(each)} {_shell_case_id(example[0])}", example[1]))
    if alone:
        commands.append((f"moot show {folder_as_given(runs[0])} --format json", "these figures for a program"))
        if runs[0].settings.get("both_branches"):
            commands.append((f"moot calibrate {folder_as_given(runs[0])}", "thresholds for the gate"))
    return commands


def _example_case(done: Run) -> tuple[str, str] | None:
    """The case to look at first, and what is to be seen there; None where no case has ended."""
    rows = read_table(done.path, "verdicts", ["rounds", "failure"]).to_pylist()
    found = min(rows, key=lambda row: (bool(row["failure"]), not row["rounds"], row["case_id"]), default=None)
    if found is None:
        return None
    failed = "no case has a verdict: why this one failed"
    return found["case_id"], failed if found["failure"] else "one debate, from opening to verdict"


def _shell_case_id(case_id: str) -> str:
    """A case id as one types it: ids come from files and may hold anything."""
    return ("-- " if case_id.startswith("-") else "") + visible_line(shlex.quote(case_id))


def readable_folder(prepared: Prepared) -> str | Path:
    """Where a run is read after it was held: as it was named, or the copy of what lies in a store."""
    return folder_as_given(prepared) if prepared.mirror is None else prepared.folder


def folder_as_given(prepared: Prepared) -> str:
    """A run's folder as it was named."""
    return str(prepared.config.out)


def print_status(line: str, *, quiet: bool) -> None:
    """A line on stderr, unless that is not wanted."""
    if not quiet:
        print(line, file=sys.stderr, flush=True)
