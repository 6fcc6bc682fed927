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
from moot.deploy.results.report.render import show_report
from moot.deploy.results.show import show_summary
from moot.deploy.results.summaries.compare import compare
from moot.deploy.results.summaries.comparison_blocks import comparison_blocks
from moot.deploy.results.summaries.summary import summarise
from moot.deploy.results.text import shell_case_id, visible_line
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
    if len(runs) == 1:
        results = [run_and_report(runs[0], quiet=quiet, summarised=True, watch=watch)]
        show_summary(summarise(readable_folder(runs[0])))
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
    print_next_commands(_next_commands(runs, results))
    for result in results:
        if result.commonest_failure:
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


def _next_commands(runs: Sequence[Prepared], results: Sequence[Run]) -> list[tuple[str, str]]:
    """Next commands: the report; for one run a debate and its figures, for several their differences and failures."""
    is_single, folders = len(runs) == 1, " ".join(map(folder_as_given, runs))
    commands = [(f"moot report {folders}", "one page: charts, all cases, transcripts")]
    if not is_single:
        commands.append((f"moot compare {folders} --cases", "the cases that they answer differently"))
        commands.append((f"moot show {folder_as_given(runs[0])}", "the figures of one run"))
    for each, result in zip(runs, results, strict=True):
        if (is_single or result.failed == result.done) and (example := _example_case(result)) is not None:
            commands.append((f"moot show {folder_as_given(each)} {shell_case_id(example[0])}", example[1]))
    if is_single:
        commands.append((f"moot show {folder_as_given(runs[0])} --format json", "these figures as JSON"))
        if runs[0].settings.get("both_branches"):
            commands.append((f"moot calibrate {folder_as_given(runs[0])}", "thresholds for the gate"))
    return commands


def _example_case(result: Run) -> tuple[str, str] | None:
    """Id and description of an example case, a debated one if any; None when no case has ended."""
    rows = read_table(result.path, "verdicts", ["rounds", "failure"]).to_pylist()
    example = min(rows, key=lambda row: (bool(row["failure"]), not row["rounds"], row["case_id"]), default=None)
    if example is None:
        return None
    failed = "no case has a verdict: why this one failed"
    return example["case_id"], failed if example["failure"] else "one debate, from opening to verdict"
