"""Import of judged replies from the records of runs, with tokens, the debate's verdict and its case."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.sampling import UNKNOWN, Sampling
from moot.actors.record.rows import LENGTH, is_truncated
from moot.actors.record.tables import read_table
from moot.deploy.results.analysis.replies import Replies, numbers, texts
from moot.deploy.results.analysis.tokens import Tokens, content_starts, join_tokens
from moot.deploy.results.record.readers import latest_verdicts
from moot.deploy.results.record.references import References
from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.record.run_info import RunInfo, read_run_info
from moot.metrics.signal_divergences import FLAGGED
from moot.protocols.errors import ConfigError, RecordError
from moot.protocols.registry import PROTOCOLS
from moot.protocols.rubrics.events import ReplyAssessed

Key = tuple[str, int, str]

_TRUNCATED = "truncated at the token limit (--keep-truncated keeps them)"
_OVERLONG = "longer than the requested tokens can be, and cut (--keep-truncated keeps them)"


class _JudgedReply(NamedTuple):
    """Judged reply of a debate that did not fail."""

    run: str
    key: Key
    data: ReplyAssessed
    correct: bool | None
    dataset: str
    cluster: str
    slot: str


def replies_of_runs(
    folders: Sequence[str | Path], vocabulary: int | None = None, *, keep_truncated: bool = False
) -> Replies:
    """Judged replies of several runs.

    Of each debate, the latest attempt with a verdict is read. Replies of failed and open debates and `assessment`
    events of another form are excluded and counted.

    Args:
        folders: folders of the runs.
        vocabulary: size of the models' vocabulary, for the upper bound of the entropies; None when unknown.
        keep_truncated: whether to include replies that were truncated at their token limit.

    Raises:
        ConfigError: a run is named twice.
        RecordError: a folder has no run or cannot be read, or no run has a judged reply of a debate that did not fail.
    """
    same = [folder for folder, count in Counter(Path(each).resolve() for each in folders).items() if count > 1]
    if same:
        raise ConfigError(f"{same[0]} is named twice: its replies would count twice")
    judged: list[_JudgedReply] = []
    left_out = Counter[str]()
    tokens, turns = list[Tokens](), dict[tuple[str, Key], Mapping[str, Any]]()
    datasets = _datasets([Path(folder) for folder in folders])
    for folder in map(Path, folders):
        found = _judged(folder, _name(folder, folders), datasets[folder], left_out)
        turns_of_run = _turns(folder, {each.key for each in found})
        if not keep_truncated:
            cut = {key: row for key, row in turns_of_run.items() if row["finish_reason"] == LENGTH}
            not_whole = [cut[each.key] for each in found if each.key in cut]
            left_out.update(_TRUNCATED if is_truncated(row) else _OVERLONG for row in not_whole)
            found = [each for each in found if each.key not in cut]
        judged += found
        tokens.append(_tokens(folder, [each.key for each in found]))
        turns |= {(_name(folder, folders), key): row for key, row in turns_of_run.items()}
    if not judged:
        where = ", ".join(str(folder) for folder in folders)
        if left_out:
            counts = "; ".join(f"{count:,} {reason}" for reason, count in left_out.items())
            raise RecordError(f"{where}: every judged reply is left out ({counts}): resume the run first")
        raise RecordError(f"{where}: {_none_judged([read_run_info(folder) for folder in folders])}")
    roles = [role for folder in folders for role in _roles(read_run_info(folder))]
    return _replies(judged, turns, join_tokens(tokens), left_out, vocabulary, roles)


def _none_judged(runs: Sequence[RunInfo]) -> str:
    """Error message for runs without a reply judged under a rubric."""
    protocols = ", ".join(dict.fromkeys(str(run.protocol) for run in runs))
    task = shlex.quote(next((run.task for run in runs if run.task), "TASK"))
    return (
        f"no reply has been judged under a rubric there (protocol {protocols}): see `moot show` for its results. For "
        f"this analysis run `moot run --protocol constructor-auditor --task {task}` and analyze that, judge replies "
        "that you have with `moot judge FILE`, or give a table of your own with --table"
    )


def _name(folder: Path, folders: Sequence[str | Path]) -> str:
    """Name of a run; its path if another run has the same name."""
    same = [other for other in map(Path, folders) if other.name == folder.name]
    return folder.name if len(same) == 1 else str(folder)


def _datasets(folders: Sequence[Path]) -> dict[Path, str]:
    """Names of the runs' data sets, for cases without parts: the task, with its file where the runs' files differ."""
    specs = {folder: read_run_info(folder).task or folder.name for folder in folders}
    files = {folder: spec.partition(":")[::2] for folder, spec in specs.items()}
    several = {name for name, _ in files.values() if len({file for other, file in files.values() if other == name}) > 1}
    return {
        folder: f"{name} ({Path(file).name})" if name in several else name for folder, (name, file) in files.items()
    }


def _judged(folder: Path, run: str, dataset: str, left_out: Counter[str]) -> list[_JudgedReply]:
    events = read_table(folder, "events", ["data"])
    events = events.filter(pc.equal(events["kind"], ReplyAssessed.kind))
    verdicts = {verdict.case_id: verdict for verdict in latest_verdicts(folder)}
    references = References.of(folder)
    found = []
    for row in events.to_pylist():
        case_id = row["case_id"]
        verdict = verdicts.get(case_id)
        if verdict is None or verdict.attempt != row["attempt"] or verdict.failed:
            left_out[_why_not(row["attempt"], verdict)] += 1
            continue
        if (data := ReplyAssessed.read(msgspec.json.decode(row["data"]))) is None:
            left_out["with marks of another form than a panel's"] += 1
            continue
        found.append(
            _JudgedReply(
                run=run,
                key=(case_id, row["attempt"], data.reply),
                data=data,
                correct=verdict.correct,
                dataset=references[case_id].part or dataset,
                cluster=references.group(case_id),
                slot=_slot(case_id, references[case_id].group),
            )
        )
    return found


def _slot(case_id: str, group: str) -> str:
    """Position of a case in its group: the part of its id after the group's name, such as the trait."""
    return case_id.removeprefix(group) if group and case_id.startswith(group) else ""


def _why_not(attempt: int, latest: VerdictRow | None) -> str:
    if latest is None or latest.attempt < attempt:
        return "of a debate without verdict"
    return "of an attempt that was retried" if latest.attempt > attempt else "of a debate that failed"


def _tokens(folder: Path, keys: Sequence[Key]) -> Tokens:
    """Tokens of these replies, in their order; empty for a reply without log-probabilities."""
    columns = ["token", "logprob", "alternatives", "alt_logprob"]
    table = read_table(folder, "tokens", columns)
    place = {key: number for number, key in enumerate(_keys(table))}
    rows = [place.get(key) for key in keys]
    known = table.take(pa.array([row for row in rows if row is not None], pa.int64())).combine_chunks()
    return Tokens.from_arrow(known, np.array([row is not None for row in rows], np.bool_))


def _turns(folder: Path, keys: set[Key]) -> dict[Key, Mapping[str, Any]]:
    """Roles, models and sampling parameters of these replies."""
    columns = ["role", "model", "temperature", "top_p", "logprob_stage", "held", "finish_reason", "reading"]
    table = read_table(folder, "turns", columns)
    table = table.filter(pc.invert(table["superseded"]))
    rows = table.select(columns).to_pylist()
    return {key: row for key, row in zip(_keys(table), rows, strict=True) if key in keys}


def _keys(table: pa.Table) -> list[Key]:
    columns = (table[name].to_pylist() for name in ("case_id", "attempt", "path"))
    return list(zip(*columns, strict=True))


def _replies(
    judged: Sequence[_JudgedReply],
    turns: Mapping[tuple[str, Key], Mapping[str, Any]],
    tokens: Tokens,
    left_out: Mapping[str, int],
    vocabulary: int | None,
    roles: Sequence[str],
) -> Replies:
    rows = [turns.get((each.run, each.key), {}) for each in judged]
    clusters = {key: n for n, key in enumerate(sorted({(each.dataset, each.cluster) for each in judged}))}
    asked = [(each.dataset, each.data.role, row.get("model")) for each, row in zip(judged, rows, strict=True)]
    starts, openings = content_starts(tokens.heads, asked)
    sampled = ("temperature", "top_p", "logprob_stage", "held")
    sampling = [Sampling.recorded(*(row.get(name) for name in sampled)) for row in rows]
    tokens = tokens.own(sampling)
    dimensions = list(dict.fromkeys(name for each in judged for name in each.data.dimensions))
    flags = [each.data.flag for each in judged]
    occurring = {each.data.role for each in judged}
    return Replies(
        run=texts(each.run for each in judged),
        case=texts(each.key[0] for each in judged),
        reply=texts(each.key[2] for each in judged),
        group=np.array([clusters[each.dataset, each.cluster] for each in judged], np.int64),
        slot=texts(each.slot for each in judged),
        rubric=texts(each.data.rubric for each in judged),
        dataset=texts(each.dataset for each in judged),
        domain=texts(each.data.domain or "" for each in judged),
        role=texts(each.data.role for each in judged),
        model=texts(row.get("model") or UNKNOWN for row in rows),
        sampling=sampling,
        logprobs=tokens.logprobs,
        has_logprobs=tokens.known,
        content_start=starts,
        opening=openings,
        entropies=tokens.entropies(vocabulary),
        scores={name: numbers(each.data.scores.get(name) for each in judged) for name in dimensions},
        quality=numbers(each.data.quality for each in judged),
        flag=numbers(None if flag is None else float(flag >= FLAGGED) for flag in flags),
        correct=numbers(each.correct for each in judged),
        confidence=np.full(len(judged), np.nan),
        assessments=[each.data for each in judged],
        left_out=dict(left_out),
    ).in_order([*(role for role in dict.fromkeys(roles) if role in occurring), *sorted(occurring - set(roles))])


def _roles(facts: RunInfo) -> tuple[str, ...]:
    """Roles of a run's protocol, in its order; empty for a protocol that is not built in."""
    entry = PROTOCOLS.get(facts.protocol or "")
    return tuple(entry.make({}).roles) if entry is not None else ()
