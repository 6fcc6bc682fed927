"""Judged replies of runs or of a table, with tokens, scores, correctness and features of the log-probabilities."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.sampling import UNKNOWN, Sampling, mask_forced_tokens
from moot.actors.record.rows import LENGTH, is_truncated
from moot.actors.record.tables import read_table
from moot.deploy.results.record import VerdictRow, latest_verdicts
from moot.deploy.results.references import References
from moot.deploy.results.run_info import RunInfo, read_run_info
from moot.metrics.confidence_features import LEAST_LOGPROB, Feature, Origin, Signal, features, window_features
from moot.metrics.content_start import content_start, shared_prefixes
from moot.metrics.distribution import Floats
from moot.metrics.ragged import RaggedArray
from moot.metrics.signal_divergences import FLAGGED
from moot.metrics.token_entropy import entropy_lower, entropy_renormalised, entropy_upper
from moot.protocols.errors import ConfigError, RecordError
from moot.protocols.registry import PROTOCOLS
from moot.protocols.rubrics.events import ReplyAssessed

HEAD_TOKENS = 24
"""Tokens at the start of a reply that are searched for its opening."""


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Tokens of R replies.

    Attributes:
        logprobs: log-probabilities in nats; an empty row for a reply without any.
        alternatives: log-probabilities of the alternatives, K for each token of a row; empty rows without any.
        known: whether each reply has log-probabilities.
        heads: the first `HEAD_TOKENS` tokens of each reply; empty where unknown.
    """

    logprobs: RaggedArray
    alternatives: RaggedArray
    known: npt.NDArray[np.bool_]
    heads: Sequence[Sequence[str]]

    @staticmethod
    def from_arrow(table: pa.Table, known: npt.NDArray[np.bool_]) -> Tokens:
        """Tokens of R replies from a table of those that have any.

        Args:
            table: a row for each known reply, in order, with the column `logprob` (list of floats) and optionally
                `token` (list of texts), `alternatives` (number of alternatives of each token) and `alt_logprob`
                (flattened T x K).
            known: whether each reply has a row in the table, shape `(R,)`.
        """
        logprobs = ragged_of(table["logprob"])
        heads = _heads(table)
        valid = np.asarray(pc.is_valid(table["logprob"]).to_numpy(zero_copy_only=False), np.bool_)
        has_logprobs = np.zeros(len(known), np.bool_)
        has_logprobs[np.flatnonzero(known)[valid]] = True
        remaining = iter(heads)
        listed = "alt_logprob" if "alt_logprob" in table.column_names else None
        none = RaggedArray(np.empty(0, np.float32), np.zeros(len(known) + 1, np.int64))
        return Tokens(
            logprobs=_spread(logprobs, known),
            alternatives=_spread(ragged_of(table[listed]), known) if listed else none,
            known=has_logprobs,
            heads=[next(remaining) if has_row else [] for has_row in known.tolist()],
        )

    def own(self, sampling: Sequence[Sampling]) -> Tokens:
        """Tokens with NaN where a schema's mask may have forced the token: it has no information on the model.

        Args:
            sampling: the sampling parameters of each reply.
        """
        masked = np.array([each.may_be_masked for each in sampling], np.bool_)
        if not masked.any():
            return self
        return replace(
            self, logprobs=_unforced(self.logprobs, masked), alternatives=_unforced(self.alternatives, masked)
        )

    def entropies(self, vocabulary: int | None) -> dict[str, RaggedArray]:
        """Token entropies in nats, by name; empty without alternatives, and without `upper` for an unknown vocabulary.

        Raises:
            ConfigError: a token has more alternatives than the vocabulary has tokens.
        """
        if not len(self.alternatives.values):
            return {}
        found = {
            "lower": entropy_lower(self.logprobs, self.alternatives),
            "renormalised": entropy_renormalised(self.logprobs, self.alternatives),
        }
        if vocabulary is not None:
            try:
                found["upper"] = entropy_upper(self.logprobs, self.alternatives, vocabulary)
            except ValueError as error:
                raise ConfigError(f"--vocabulary {vocabulary} is too small: {error}") from None
        return found


def join_tokens(parts: Sequence[Tokens]) -> Tokens:
    """Tokens of several runs, concatenated."""
    if len(parts) == 1:
        return parts[0]
    return Tokens(
        logprobs=RaggedArray.concatenate([part.logprobs for part in parts]),
        alternatives=RaggedArray.concatenate([part.alternatives for part in parts]),
        known=np.concatenate([part.known for part in parts]),
        heads=[head for part in parts for head in part.heads],
    )


def content_starts(
    heads: Sequence[Sequence[str]], alike: Sequence[Hashable]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
    """Start of each reply's content as a token index, and the opening before it, each of shape `(R,)`.

    An opening is a section label, or the common start of nearly all replies to the same kind of ask.

    Args:
        heads: the first tokens of each reply.
        alike: a key of each reply, equal for replies to the same kind of ask.
    """
    starts = np.array([content_start(head) for head in heads], np.int64)
    groups: dict[Hashable, list[int]] = {}
    for number, key in enumerate(alike):
        groups.setdefault(key, []).append(number)
    for numbers in groups.values():
        starts[numbers] = np.maximum(starts[numbers], shared_prefixes([heads[number] for number in numbers]))
    openings = ["".join(head[:start]).strip() for head, start in zip(heads, starts.tolist(), strict=True)]
    return starts, np.array(openings, dtype=object)


def ragged_of(column: pa.ChunkedArray) -> RaggedArray:
    """Ragged array of a list column; a null list is an empty row, a null number is NaN."""
    kind = pa.large_list(pa.float32())
    lists = pa.chunked_array(column.chunks, column.type).cast(kind).combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.chunk(0) if lists.num_chunks else pa.array([], kind)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False), np.int64)
    values = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    return RaggedArray(values, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))


def _heads(table: pa.Table) -> list[list[str]]:
    """First tokens of each reply; empty lists where their texts are unknown."""
    if "token" not in table.column_names:
        return [[] for _ in range(table.num_rows)]
    heads = pc.list_slice(table["token"], 0, HEAD_TOKENS).to_pylist()
    return [[token or "" for token in head or ()] for head in heads]


def _spread(rows: RaggedArray, known: npt.NDArray[np.bool_]) -> RaggedArray:
    """Rows at the known positions, with empty rows elsewhere."""
    lengths = np.zeros(len(known), np.int64)
    lengths[known] = rows.lengths
    return RaggedArray(rows.values, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))


def _unforced(rows: RaggedArray, masked: npt.NDArray[np.bool_]) -> RaggedArray:
    return RaggedArray(
        np.where(np.repeat(masked, rows.lengths), mask_forced_tokens(rows.values), rows.values), rows.offsets
    )


Texts = npt.NDArray[np.object_]
Rows = npt.NDArray[np.int64]

QUALITY, FLAG = "quality", "critical flag"
"""Targets of every rubric: Q, and whether at least half of the marks flag the reply."""


@dataclass(frozen=True, slots=True, eq=False)
class Replies:
    """Replies as columns of R rows, in an order that does not depend on the order of the record.

    Attributes:
        run, case, reply: the run or file, the case's id, and the reply's path.
        group: cluster index from 0: replies on one case, or on cases of one group, are not independent.
        slot: the case's position in its group, such as the trait of an essay; empty when unknown.
        rubric: the rubric of the judges; empty when unknown.
        dataset, domain, role, model: data set, domain, role and model.
        sampling: sampling parameters.
        logprobs: log-probability of each token, in nats; empty rows for replies without any.
        has_logprobs: whether the reply has log-probabilities; an empty reply may have them, of no token.
        content_start: index of the first token after the section label or other fixed opening.
        opening: that opening as text; empty without one.
        entropies: entropy of each token, in nats, by name (`lower`, `renormalised`, `upper`); empty without
            alternatives.
        scores: mean over the marks, by dimension; NaN where it is missing.
        quality: mean Q; NaN where every mark is missing.
        flag: 1 where at least half of the marks flag the reply, else 0; NaN where every mark is missing.
        correct: 1 where the case's answer is right, else 0; NaN where it cannot be scored.
        confidence: the stated probability of the answer, in [0, 1]; NaN where none was stated, as in a run.
        assessments: the event `assessment`; None where the reply was not judged.
        left_out: excluded replies by reason.
    """

    run: Texts
    case: Texts
    reply: Texts
    group: Rows
    slot: Texts
    rubric: Texts
    dataset: Texts
    domain: Texts
    role: Texts
    model: Texts
    sampling: Sequence[Sampling]
    logprobs: RaggedArray
    has_logprobs: npt.NDArray[np.bool_]
    content_start: Rows
    opening: Texts
    entropies: Mapping[str, RaggedArray]
    scores: Mapping[str, Floats]
    quality: Floats
    flag: Floats
    correct: Floats
    confidence: Floats
    assessments: Sequence[ReplyAssessed | None]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.case)

    @property
    def ordinal(self) -> dict[str, Floats]:
        """Ordinal targets by name: every dimension, and Q."""
        return {**self.scores, QUALITY: self.quality}

    @property
    def binary(self) -> dict[str, Floats]:
        """Binary targets by name: the flag, and whether the answer is right."""
        return {FLAG: self.flag, "correct": self.correct}

    def in_order(self, roles: Sequence[str]) -> Replies:
        """Replies sorted by data set, group, slot, case, role, run and reply, with groups renumbered in that order.

        Args:
            roles: every role, in display order.
        """
        place = {role: number for number, role in enumerate(roles)}
        role_order = [place[role] for role in self.role]
        keys = zip(self.dataset, self.group, self.slot, self.case, role_order, self.run, self.reply, strict=True)
        rows = np.array([number for _, number in sorted((key, n) for n, key in enumerate(keys))], np.int64)
        group = self.group[rows]
        first = np.unique(group, return_index=True)[1]
        renumbered = np.empty(int(group.max()) + 1 if len(group) else 0, np.int64)
        renumbered[group[np.sort(first)]] = np.arange(len(first))
        taken = {each.name: _take(getattr(self, each.name), rows) for each in fields(self) if each.name != "left_out"}
        return replace(self, **taken | {"group": renumbered[group]})


def _take(column: Any, rows: Rows) -> Any:
    """Rows of a field of `Replies` of any type."""
    if isinstance(column, RaggedArray):
        return column.take(rows)
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, Mapping):
        return {name: _take(values, rows) for name, values in column.items()}
    return [column[row] for row in rows.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """Stratum of replies that may be pooled: one data set, model, sampling, rubric and role.

    Attributes:
        dataset: the data set; the domain, for strata by domain.
        rows: indices of the replies.
        words: display name, unique among the strata: `asap-7 / constructor`.
    """

    dataset: str
    model: str
    sampling: Sampling
    rubric: str
    role: str
    rows: Rows
    words: str

    @property
    def named(self) -> dict[str, Any]:
        """Display name and keys: the first columns of most tables."""
        return {"stratum": self.words, **self.keys}

    @property
    def keys(self) -> dict[str, Any]:
        """Columns that identify the stratum."""
        return {
            "dataset": self.dataset,
            "model": self.model,
            "sampling": self.sampling.words,
            "rubric": self.rubric,
            "role": self.role,
        }


def texts(values: Iterable[str]) -> Texts:
    """Array of texts, of dtype object."""
    return np.array(list(values), dtype=object)


def numbers(values: Iterable[float | bool | None]) -> Floats:
    """Array of numbers, with NaN for None."""
    return np.array(list(values), np.float64)


def strata(replies: Replies, by: Literal["dataset", "domain"] = "dataset") -> list[Stratum]:
    """Strata of replies by data set, model, sampling, rubric and role; roles in order of first occurrence.

    With `by="domain"`, the data sets of a domain are pooled.
    """
    found: dict[tuple[str, str, Sampling, str, str], list[int]] = {}
    keys = zip(getattr(replies, by), replies.model, _stages(replies), replies.rubric, replies.role, strict=True)
    for number, key in enumerate(keys):
        found.setdefault(key, []).append(number)
    several = [len({key[place] for key in found}) > 1 for place in range(4)]

    def words(dataset: str, model: str, sampling: Sampling, rubric: str, role: str) -> str:
        parts = (dataset, model, sampling.words, rubric)
        return " / ".join([part for part, needed in zip(parts, several, strict=True) if needed] + [role])

    ordered = sorted(found.items(), key=lambda item: tuple(map(str, item[0][:4])))
    return [Stratum(*key, np.array(rows, np.int64), words(*key)) for key, rows in ordered]


def _stages(replies: Replies) -> list[Sampling]:
    """Sampling of each reply, with the stage of comparable replies for one without log-probabilities.

    The stage of such a reply is undefined; it takes that of the replies with the same data set, model, temperature and
    top-p, if they share one, so that its scores are pooled with theirs.
    """
    comparable: dict[tuple[Any, ...], set[str]] = {}
    keys = list(zip(replies.dataset, replies.model, (each[:2] for each in replies.sampling), strict=True))
    for key, sampling, known in zip(keys, replies.sampling, replies.has_logprobs, strict=True):
        if known:
            comparable.setdefault(key, set()).add(sampling.stage)
    return [
        sampling._replace(stage=next(iter(comparable[key])))
        if not known and len(comparable.get(key, ())) == 1
        else sampling
        for key, sampling, known in zip(keys, replies.sampling, replies.has_logprobs, strict=True)
    ]


def settings_of(several: Sequence[Stratum]) -> Iterator[tuple[str, list[Stratum]]]:
    """Groups of strata that differ only in the role: their common name, and the strata."""
    found: dict[tuple[str, str, Sampling, str], list[Stratum]] = {}
    for stratum in several:
        found.setdefault((stratum.dataset, stratum.model, stratum.sampling, stratum.rubric), []).append(stratum)
    for members in found.values():
        yield members[0].words.removesuffix(members[0].role).removesuffix(" / ") or members[0].dataset, members


ENTROPY = "renormalised"
"""Name of the entropy whose features are extracted: that over the listed alternatives alone."""


@dataclass(frozen=True, slots=True, eq=False)
class ReplyFeatures:
    """Feature matrix of the replies.

    Attributes:
        replies: the replies.
        features: names of the columns.
        x: features, shape `(R, F)`; NaN where a reply has no token in the window.
        mu: mean log-probability of each reply, in nats, shape `(R,)`; NaN without any.
        sigma: population standard deviation of the log-probabilities of each reply, shape `(R,)`.
        length: number of tokens with a log-probability, shape `(R,)`; NaN without any.
        unknown_tokens: number of tokens without a valid log-probability (not finite, or a vendor's -9999).
    """

    replies: Replies
    features: tuple[Feature, ...]
    x: Floats
    mu: Floats
    sigma: Floats
    length: Floats
    unknown_tokens: int

    def column(self, name: str) -> Floats:
        """Column of a feature, shape `(R,)`."""
        return self.x[:, [feature.name for feature in self.features].index(name)]


def extract_features(replies: Replies) -> ReplyFeatures:
    """Feature matrix of replies, for log-probability and (with alternatives) entropy, from token 0 and from content."""
    signals: list[tuple[Signal, RaggedArray]] = [("logprob", replies.logprobs)]
    if ENTROPY in replies.entropies:
        signals.append(("entropy", replies.entropies[ENTROPY]))
    names: list[Feature] = []
    columns: list[Floats] = []
    for signal, values in signals:
        origins: list[tuple[Origin, RaggedArray]] = [("token 0", values)]
        if replies.content_start.any():
            origins.append(("content", values.from_starts(np.minimum(replies.content_start, values.lengths))))
        for origin, part in origins:
            names += features(signal, origin)
            columns.append(window_features(part))
    x = np.concatenate(columns, axis=1)
    place = {feature.name: number for number, feature in enumerate(names)}
    lengths = replies.logprobs.lengths.astype(np.float64)
    tokens = replies.logprobs.values
    return ReplyFeatures(
        replies=replies,
        features=tuple(names),
        x=x,
        mu=x[:, place["logprob.full.mean"]],
        sigma=x[:, place["logprob.full.std"]],
        length=np.where(replies.has_logprobs & (lengths > 0), lengths, np.nan),
        unknown_tokens=int((~np.isfinite(tokens) | (tokens <= LEAST_LOGPROB)).sum()),
    )


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
