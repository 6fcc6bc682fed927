"""Overview of a run: whether it worked, whether it is any good, and what to do next; then what was run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.results.figures.raters import score_blocks
from moot.deploy.results.figures.replies import reply_blocks
from moot.deploy.results.figures.summary import Summary, record_summary, summary_rows
from moot.deploy.results.figures.worth import baselines, single_agent_step
from moot.deploy.results.record import RunRecord
from moot.deploy.results.report.blocks import Block, Heading, Items, Note, Pairs, Table
from moot.deploy.results.report.render import banner
from moot.deploy.results.text import cases, count, counts_in_words, percent, shell_path


def overview(run: RunRecord) -> Iterator[Block]:
    """The answer to "did it work, is it any good, what next", and the run's figures."""
    summary = record_summary(run)
    yield Heading(f"Run {summary.run}", 1)
    yield from banner(summary.simulated)
    yield Note(" ".join((_worked(summary), _quality(summary))), "strong")
    yield from (Note(each.gain) for each in run.once(baselines))
    yield from (Note(line, "warning") for line in summary.warnings)
    steps = [*next_steps(summary), *([] if (step := single_agent_step(run)) is None else [step])]
    if steps:
        yield Heading("What next", 3)
        yield Items(steps)
    yield Heading("Overview")
    yield Pairs(summary_rows(summary))
    yield from score_blocks(summary.scores or ())
    yield from reply_blocks(summary.model_replies)
    yield Pairs(list(_provenance(run)))
    yield Table("Prompt templates", ("template", "hash of its text"), _templates(run), folded=True)


def _provenance(run: RunRecord) -> Iterator[tuple[str, str]]:
    """Provenance of the run: seed, versions and code."""
    written = read_run_yaml(RunFolder(run.folder))
    yield "seed", str(written.get("seed", "unknown"))
    versions = written.get("versions")
    if isinstance(versions, Mapping):
        yield "versions", ", ".join(f"{name} {version}" for name, version in versions.items())
    yield "code revision", str(written.get("code_revision") or "unknown")
    yield "started", str(written.get("started_at") or "unknown")


def _templates(run: RunRecord) -> list[tuple[str, str]]:
    """The templates that the run's asks used, with the hashes of their texts."""
    hashes = read_run_yaml(RunFolder(run.folder)).get("templates")
    used = dict.fromkeys(each.template for each in record_summary(run).model_replies if each.template)
    return [(name, str(hashes.get(name, "unknown")) if isinstance(hashes, Mapping) else "unknown") for name in used]


def _worked(summary: Summary) -> str:
    """Whether the run is complete."""
    if not summary.open and not summary.failed:
        return "The only case finished." if summary.cases == 1 else f"All {count(summary.cases)} cases finished."
    failed = f", {count(summary.failed)} failed" if summary.failed else ""
    withdrawn = f", {count(summary.withdrawn)} withdrawn" if summary.withdrawn else ""
    left = summary.open - summary.withdrawn
    are = "is" if left == 1 else "are"
    rest = f", {count(left)} {are} open: the run is not complete" if left else ""
    return f"{count(summary.finished)} of {cases(summary.cases)} finished{failed}{withdrawn}{rest}."


def _quality(summary: Summary) -> str:
    """Quality of the answers, as far as known."""
    if summary.accuracy is None:
        why = "the cases have no gold label" if summary.finished else "no case has finished"
        return f"{_outcomes(summary)}No answer can be scored: {why}."
    accuracy = percent(summary.accuracy, summary.accuracy_interval, summary.scored, summary.scored_groups)
    if summary.open:
        return f"Accuracy so far {accuracy}; the cases that end first are often the easier ones."
    return f"Accuracy {accuracy}."


def _outcomes(summary: Summary) -> str:
    """Counts of the outcomes of debates on subjects, where no answer is right or wrong; empty without any."""
    if summary.rulings is None:
        return ""
    winners = {name: n for name, n in summary.rulings.winners.items() if n}
    reached = {name: n for name, n in summary.rulings.consensus.items() if n}
    parts = {"Verdicts": winners, "Consensus": reached}
    return "".join(f"{name}: {counts_in_words(found)}. " for name, found in parts.items() if found)


def next_steps(summary: Summary) -> Iterator[str]:
    """Suggested next steps, most urgent first."""
    run = shell_path(summary.run)
    if summary.stopped_by is not None:
        yield f"The run was stopped: {summary.stopped_by}."
        yield "The same command resumes it; after a budget stop, with a larger budget."
    elif left := summary.open - summary.parked - summary.withdrawn:
        yield (
            f"{cases(left)} have no verdict. If the run is not under way, enter the same command again to resume it."
        )
    if summary.parked:
        waiting = "1 debate waits" if summary.parked == 1 else f"{count(summary.parked)} debates wait"
        yield f"{waiting} for a person: moot decide {run}"
    if summary.failed:
        yield (
            f"See why cases failed: moot show {run} --failed. The same command with --retry-failed runs them again; "
            f"other settings are another run: --out NEW --reuse {run} pays only for what differs."
        )
    if summary.labels_questioned:
        yield f"Doubtful gold labels: {count(summary.labels_questioned)}. Read them: moot show {run} --questioned"
    if summary.accuracy is not None and summary.accuracy < 1.0:
        yield f"Read the cases answered wrong: moot show {run} --wrong, or Wrong above the table of cases."
    if summary.simulated:
        yield "For figures of a real model, give --model NAME; moot models lists the forms of a name."
