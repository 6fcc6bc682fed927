"""Run of one protocol, or runs of several protocols in sequence with a comparison at the end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moot.actors.record.tables import read_table
from moot.deploy.cli.console import (
    _MAX_LINE,
    build_run_config,
    folder_as_given,
    print_next_commands,
    print_status,
    readable_folder,
    run_and_report,
)
from moot.deploy.cli.multi_protocol import configs_by_protocol, settings_for, unused_roles
from moot.deploy.results.figures.comparison import compare, comparison_blocks
from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.report.render import show_report
from moot.deploy.results.show import show_summary
from moot.deploy.results.text import shell_case_id, shell_path, visible_line
from moot.deploy.runs.caveats import log_caveats
from moot.deploy.runs.checks import check_models
from moot.deploy.runs.dry_run import plan
from moot.deploy.runs.model_trials import TrialResults
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.prepare import Prepared, prepare
from moot.deploy.runs.resume import check_resumable
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.run_library import LibraryCache
from moot.deploy.service.view.process import check_watchable


def execute(
    file: Path | None, flags: Mapping[str, Any], *, dry_run: bool = False, quiet: bool = False, watch: bool = False
) -> int:
    """Execute `moot run`; returns the exit code.

    Raises:
        UserError: the input is invalid; nothing was written.
    """
    config = build_run_config(flags, file)
    names = [name.strip() for name in config.protocol.split(",")]
    runs = _prepared(config, names, quiet=quiet)
    if dry_run:
        show_plans(runs)
        return 0
    if watch:
        check_watchable()
    for each in runs:
        print_status(each.columns_read, quiet=quiet)
    if len(runs) == 1:
        results = [run_and_report(runs[0], quiet=quiet, summarised=True, watch=watch)]
        summary = summarise(readable_folder(runs[0]))
        show_summary(summary)
        has_wrong = summary.accuracy is not None and summary.accuracy < 1.0
        commands = _commands_for_one(runs[0], results[0], has_wrong=has_wrong)
    else:
        for each in runs:
            check_resumable(each)
        results = []
        for each in asyncio.run(_checked(runs, network=True)):
            print_status(f"{each.protocol.name}:", quiet=quiet)
            results.append(run_and_report(each, quiet=quiet, watch=watch))
            if results[-1].status == "stopped":
                return results[-1].exit_code
        comparison = compare([readable_folder(each) for each in runs])
        show_report(comparison, lambda: comparison_blocks(comparison))
        commands = _commands_for_several(runs, results)
    print_next_commands(commands)
    for result in results:
        if result.commonest_failure and "`moot doctor " not in result.stopped_by:  # which says the same
            print(visible_line(f"most frequent failure: {result.commonest_failure}"[:_MAX_LINE]), file=sys.stderr)
    return max(result.exit_code for result in results)


def _prepared(config: RunConfig, names: Sequence[str], *, quiet: bool) -> list[Prepared]:
    """One prepared run per protocol; several share their libraries in one folder."""
    if len(names) == 1:
        return [prepare(config.model_copy(update={"set": settings_for(names[0], names, config.set)}))]
    configs = configs_by_protocol(config, names)
    for line in (line for each in configs for line in unused_roles(config, each)):
        print_status(line, quiet=quiet)
    shared_libraries = LibraryCache(Path(str(configs[0].out)).parent)
    return [prepare(each, shared_libraries=shared_libraries) for each in configs]


async def _checked(runs: Sequence[Prepared], *, network: bool) -> list[Prepared]:
    trials = TrialResults()
    return [await check_models(each, network=network, trials=trials) for each in runs]


def show_plans(runs: Sequence[Prepared]) -> None:
    """Check the runs without network and print their plans, for `--dry-run`."""
    asyncio.run(_checked(runs, network=False))
    for each in runs:
        log_caveats(each)
    print("\n\n".join("\n".join(plan(each).lines()) for each in runs))


_REPORT = "one page: charts, all cases, transcripts"


def _commands_for_one(prepared: Prepared, result: Run, *, has_wrong: bool) -> list[tuple[str, str]]:
    """Next commands after one run: its report, its wrong cases, a debate, and its figures."""
    folder = shell_path(folder_as_given(prepared))
    commands = [(f"moot report {folder}", _REPORT)]
    if has_wrong:
        commands.append((f"moot show {folder} --wrong", "the cases answered wrong"))
    if (example := _example_case(result)) is not None:
        commands.append((f"moot show {folder} {shell_case_id(example[0])}", example[1]))
    commands.append((f"moot show {folder} --format json", "these figures as JSON"))
    if prepared.settings.get("both_branches"):
        commands.append((f"moot calibrate {folder}", "thresholds for the gate"))
    return commands


def _commands_for_several(runs: Sequence[Prepared], results: Sequence[Run]) -> list[tuple[str, str]]:
    """Next commands after several runs: their report, their differences, and a failed case where all cases failed."""
    folders = [shell_path(folder_as_given(each)) for each in runs]
    commands = [
        (f"moot report {' '.join(folders)}", _REPORT),
        (f"moot compare {' '.join(folders)} --cases", "the cases that they answer differently"),
        (f"moot show {folders[0]}", "the figures of one run"),
    ]
    for folder, result in zip(folders, results, strict=True):
        if result.failed == result.done and (example := _example_case(result)) is not None:
            commands.append((f"moot show {folder} {shell_case_id(example[0])}", example[1]))
    return commands


def _example_case(result: Run) -> tuple[str, str] | None:
    """Id and description of an example case, a debated one if any; None when no case has ended."""
    rows = read_table(result.path, "verdicts", ["rounds", "failure"]).to_pylist()
    example = min(rows, key=lambda row: (bool(row["failure"]), not row["rounds"], row["case_id"]), default=None)
    if example is None:
        return None
    if example["failure"]:
        return example["case_id"], "no case has a verdict: why this one failed"
    what = "one debate, from opening to verdict" if example["rounds"] else "one case: its replies and its verdict"
    return example["case_id"], what
