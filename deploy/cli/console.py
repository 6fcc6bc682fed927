"""Terminal output of a run: progress while it runs, and notices at its end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Exit

from moot.actors.debate.placement import cluster_address
from moot.actors.models.resolve import is_embedded
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.gate import run_warnings
from moot.deploy.results.figures.replies import how_followed, members_without_replies
from moot.deploy.results.run_info import read_run_info
from moot.deploy.results.text import cases, visible_line
from moot.deploy.runs.decide import answer_forms, decide_command, pending_forms
from moot.deploy.runs.flag_parsers import flag_of
from moot.deploy.runs.interruption import run_in_thread
from moot.deploy.runs.listener import Listener
from moot.deploy.runs.outcome import EXIT_INTERRUPTED, Run
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.progress import progress_listener
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.session import Session
from moot.protocols.errors import REPLAY_DIVERGED, UNSENT

if TYPE_CHECKING:
    from moot.deploy.service.view.watch import WatchedSession

_MAX_LISTED = 3
"""Maximum number of waiting cases that are listed."""

_PERMANENT_FAILURES = frozenset({"invalid_case", REPLAY_DIVERGED})
"""Failures that a retry cannot fix."""

_MAX_LINE = 300
"""Maximum length of an error in characters."""

_WIDTH = 80
"""Default width of a terminal in columns."""


def build_run_config(flags: Mapping[str, Any], file: Path | None = None, **fixed: Any) -> RunConfig:
    """Configuration of a command: the file, overridden by the flags, overridden by the command's own values.

    Raises:
        ConfigError: a value is invalid; names the flag or the key.
    """
    return RunConfig.build(file, {**flags, **fixed}, flag_of)


def run_with_progress(prepared: Prepared, *, quiet: bool, watch: bool = False) -> Run:
    """Run with progress on stderr; the first Ctrl-C drains the run, the second ends this process.

    Args:
        prepared: the run.
        quiet: whether progress is omitted.
        watch: whether a live page of the run is served; its address is printed even if `quiet`.
    """
    listener = progress_listener(quiet=quiet, gated=prepared.gated)
    session = _watched(prepared, listener) if watch else Session(prepared, listener)
    models = dict.fromkeys(member.model for member in prepared.members if not is_embedded(member.model))
    if models and not prepared.record.exists():
        print_status(f"testing {', '.join(models)} before the first debate ...", quiet=quiet)
    if prepared.config.engine == "ray" and not quiet:
        address = cluster_address(prepared.config.address)
        starting = "starting a local Ray ..." if address is None else f"joining the Ray cluster at {address} ..."
        print_status(starting, quiet=not sys.stderr.isatty())
    return run_in_thread(session, on_signals=lambda: report_stopping(session))


def _watched(prepared: Prepared, listener: Listener) -> WatchedSession:
    from moot.deploy.service.view.watch import WatchedSession

    return WatchedSession(prepared, listener, lambda line: print(line, file=sys.stderr, flush=True))


def run_and_report(
    prepared: Prepared, *, quiet: bool, notes_nothing_to_do: bool = True, summarised: bool = False, watch: bool = False
) -> Run:
    """Run with progress and report the outcome; see `run_with_progress` and `report_outcome`.

    Args:
        notes_nothing_to_do: whether a line says that every case is finished already, unless `quiet`.

    Raises:
        Exit: the run was interrupted; the message is printed.
    """
    done = run_with_progress(prepared, quiet=quiet, watch=watch)
    if done.status == "interrupted":
        raise Exit(report_interrupted(done, prepared))
    report_outcome(done, prepared, quiet=quiet or not notes_nothing_to_do, summarised=summarised)
    return done


def report_stopping(session: Session | WatchedSession) -> None:
    """Print that the run is stopping, and what the stop waits for."""
    what = "finishing calls in flight" if session.is_running else "cancelling the start"
    print(f"stopping: {what} ... press Ctrl-C again to stop immediately", file=sys.stderr, flush=True)


def report_interrupted(done: Run, prepared: Prepared) -> int:
    """Print the progress of an interrupted run; returns the exit code."""
    how = "; run the same command to resume" if prepared.record.exists() else "; nothing was started or written"
    print(f"interrupted: {_progress_text(done, prepared)}{how}", file=sys.stderr)
    return EXIT_INTERRUPTED


def _progress_text(done: Run, prepared: Prepared) -> str:
    of = "" if prepared.total is None else f" of {prepared.total:,}"
    in_progress = f", {done.under_way:,} in progress" if done.under_way else ""
    where = f" in {folder_as_given(prepared)}" if prepared.record.exists() else ""
    return f"{done.done:,}{of} cases done{in_progress}{where}"


def report_outcome(done: Run, prepared: Prepared, *, quiet: bool, summarised: bool = False) -> None:
    """Print a run's notices on stderr: stop reason, failures, warnings and pending decisions.

    Args:
        quiet: whether the line about a run with nothing to do is omitted.
        summarised: whether the summary is printed, too; its warnings and the reason of a stop are then omitted here.

    Raises:
        RecordError: the record cannot be read; nothing was printed.
    """
    warnings = [] if summarised else run_warnings(done.path)
    for member in members_without_replies(done.path):
        warnings.append(f"no request to {member} got a usable reply: {how_followed(member, read_run_info(done.path))}")
    if done.status == "stopped":
        reason = "" if summarised else f"{done.stopped_by}; "
        how = "change what stopped it and run the same command to resume"
        print(f"stopped: {reason}{_progress_text(done, prepared)}; {how}", file=sys.stderr)
    if not done.worked:
        print_status("nothing to do: every case is finished", quiet=quiet)
    _report_failures(done)
    for line in warnings:
        print(visible_line(f"warning: {line}"), file=sys.stderr)
    if done.parked:
        wait = "waits" if len(done.parked) == 1 else "wait"
        print(f"{cases(len(done.parked))} {wait} for a person:", file=sys.stderr)
        for each in [form for form in pending_forms(done.path) if form.case_id in done.parked][:_MAX_LISTED]:
            print(f"  {decide_command(folder_as_given(prepared), each.case_id, 'ACTION')}", file=sys.stderr)
            print(f"    ACTION is one of: {', '.join(answer_forms(each.form))}", file=sys.stderr)


def _report_failures(done: Run) -> None:
    """Print the number of failed cases by kind of failure, a remedy, and one error."""
    rows = read_table(done.path, "verdicts", ["failure", "error"]).to_pylist()
    latest = {row["case_id"]: row for row in sorted(rows, key=lambda row: row["attempt"])}
    failed = [row for row in latest.values() if row["failure"]]
    if failed:
        kinds = Counter(row["failure"] for row in failed)
        what = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
        again = "; use --retry-failed to retry them" if any(map(_may_succeed, failed)) else ""
        if any(f": {UNSENT}: " in row["error"] for row in failed):
            again += "; correct the request that could not be sent, and run with --out NEW --reuse OLD"
        print(f"{cases(len(failed))} failed ({what}){again}", file=sys.stderr)
        print(visible_line(f"  {failed[0]['case_id']}: {failed[0]['error']}"[:_MAX_LINE]), file=sys.stderr)


def _may_succeed(row: Mapping[str, Any]) -> bool:
    """Whether a failed case may succeed when it is retried."""
    return row["failure"] not in _PERMANENT_FAILURES and f": {UNSENT}: " not in row["error"]


def print_next_commands(commands: Iterable[tuple[str, str]]) -> None:
    """Print suggested commands, each with a description of its output."""
    pairs = list(commands)
    width = max(len(command) for command, _ in pairs)
    print("\nnext:")
    for command, about in pairs:
        line = f"  {command:<{width}}  {about}"
        print(line if len(line) <= _WIDTH else f"  {command}\n      {about}")


def readable_folder(prepared: Prepared) -> str | Path:
    """Local folder of a finished run: the run's folder as given, or the local copy of a run in a store."""
    return folder_as_given(prepared) if prepared.mirror is None else prepared.folder


def folder_as_given(prepared: Prepared) -> str:
    """Folder or URI of a run, as the user gave it."""
    return str(prepared.config.out)


def print_status(line: str, *, quiet: bool) -> None:
    """Print a line on stderr, unless `quiet`."""
    if not quiet:
        print(line, file=sys.stderr, flush=True)
