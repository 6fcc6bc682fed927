"""Cases of the gate's calibration, from a record: the gate's signals, and both branches' answers and tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moot.actors.record.rows import step_of
from moot.actors.record.schema import CaseKey
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.accuracy import share
from moot.deploy.results.figures.costs import measurement_only, total_tokens
from moot.deploy.results.figures.replies import USABLE
from moot.deploy.results.record import EventRow, ReplyRow, latest_verdicts, read_as, read_events, read_replies
from moot.deploy.results.references import References
from moot.deploy.results.stats import PairedComparison, compare_paired
from moot.deploy.results.text import Interval, shell_path
from moot.metrics.distribution import Floats
from moot.protocols.errors import IGNORES_LIMIT, RAISE_MAX_TOKENS, ConfigError
from moot.protocols.selene.events import BranchesCompared, GateDecided, SkipAudited

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BothBranches:
    """Cases that ran both branches and can be scored: arrays of shape `(n,)`, where NaN is unknown.

    Attributes:
        case_ids: ids of the n cases.
        groups: their groups, see `References.group`.
        d, m, p, c: disagreement, misalignment, mean intrinsic and mean stated probability of the openings.
        skips_untested: whether a case with unknown M or p may be skipped; if not, M and p are also unknown where the p
            of an agent is.
        may_skip: whether the tests without a threshold permit a skip: equal answers and an answer of every agent, if
            required, and probabilities of one stage.
        skip_right, debate_right: whether each branch's answer is right.
        skip_tokens, debate_tokens: tokens of the openings and that branch, as if only it had run.
        single_tokens: tokens of agent 0's opening.
        taus: the run's own tau_d, tau_m and tau_p, each None where its test was off; None when the gate used no
            signals.
        left_out: excluded cases by reason.
        notes: caveats of the signals.
    """

    case_ids: tuple[str, ...]
    groups: tuple[str, ...]
    d: Floats
    m: Floats
    p: Floats
    c: Floats
    skips_untested: bool
    may_skip: Bools
    skip_right: Bools
    debate_right: Bools
    skip_tokens: Floats
    debate_tokens: Floats
    single_tokens: Floats
    taus: tuple[float | None, float | None, float | None] | None
    left_out: dict[str, int]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.case_ids)

    def held_out(self, holdout: float, seed: int) -> Bools:
        """Mask of the held-out cases, see `held_out_mask`."""
        return held_out_mask(self.groups, holdout, seed)

    def share_right(self, right: Bools, among: Bools) -> tuple[float | None, Interval | None]:
        """Share of right answers among some cases, with its 95 % interval over their groups."""
        value, interval, _ = share(zip(compress(self.groups, among), right[among].tolist(), strict=True), str)
        return value, interval

    def compared(self, first: Bools, second: Bools, among: Bools) -> PairedComparison:
        """Paired comparison of the right answers of two methods on some cases."""
        return compare_paired(first[among].tolist(), second[among].tolist(), list(compress(self.groups, among)))


class _UsableCase(NamedTuple):
    key: CaseKey
    gate: GateDecided
    skip_right: bool
    debate_right: bool


def held_out_mask(groups: Sequence[str], share: float, seed: int) -> Bools:
    """Mask of the held-out cases, by a hash of seed and group: a case stays in its split when others are added.

    Dependent cases are in one split; the group of an independent case is its id.
    """
    ids = (blake2b(f"{seed}/{group}".encode(), digest_size=8).digest() for group in groups)
    return np.array([int.from_bytes(digest, "big") / 2**64 < share for digest in ids], np.bool_)


def read_both_branches(folder: str | Path, out: str, *, keep_truncated: bool = False) -> BothBranches:
    """Cases of a run with `both_branches`.

    Args:
        folder: the run's folder.
        out: a folder for such a run, for the error message.
        keep_truncated: whether to include cases with a reply that was truncated at its token limit.

    Raises:
        ConfigError: the run has no case that ran both branches and can be scored.
        RecordError: the record cannot be read.
    """
    events = read_events(folder, (GateDecided.kind, BranchesCompared.kind, SkipAudited.kind))
    branches = {event.key: compared for event, compared in read_as(events, BranchesCompared)}
    if not branches:
        audits = sum(1 for _ in read_as(events, SkipAudited))
        audited = f" (its {audits} audited cases are reported by `moot show {shell_path(folder)}`)" if audits else ""
        raise ConfigError(f"{folder}: no case ran both branches{audited}; {_remedy(events, out)}")
    gates = {event.key: decided for event, decided in read_as(events, GateDecided)}
    references, left_out = References.of(folder), Counter[str]()
    cut = {} if keep_truncated else _cut(folder)
    usable: list[_UsableCase] = []
    for verdict in latest_verdicts(folder):
        gate, both = gates.get(verdict.key), branches.get(verdict.key)
        if verdict.failed or gate is None or both is None:
            left_out["failed" if verdict.failed else "without both branches"] += 1
            continue
        if verdict.key in cut:
            left_out[cut[verdict.key]] += 1
            continue
        skip_right = references.correct(verdict.case_id, both.skipped_answer, verdict.gold)
        debate_right = references.correct(verdict.case_id, both.debated_answer, verdict.gold)
        if skip_right is None or debate_right is None:
            left_out["cannot be scored"] += 1
            continue
        usable.append(_UsableCase(verdict.key, gate, skip_right, debate_right))
    for reason, remedy in _REMEDIES.items():
        if not usable and left_out[reason]:
            raise ConfigError(
                f"{folder}: {left_out[reason]} cases {reason}, and no other is usable: {remedy}, or give "
                "--keep-truncated"
            )
    if not usable:
        raise ConfigError(f"{folder}: no case with both branches has a gold label; use labelled cases")
    return _arrays(folder, usable, references.group, dict(sorted(left_out.items())))


def _remedy(events: Iterable[EventRow], out: str) -> str:
    """Remedy for a run without both branches."""
    if any(event.kind == GateDecided.kind for event in events):
        return f"repeat the command of this run with --set both_branches=true --out {out}"
    return "no case of it reached a gate: use a protocol that has one, with --set both_branches=true"


_TRUNCATED, _OVERLONG = "with a truncated reply", "with an overlong reply"
_REMEDIES = {_TRUNCATED: RAISE_MAX_TOKENS, _OVERLONG: IGNORES_LIMIT}


def _cut(folder: str | Path) -> dict[CaseKey, str]:
    """Debates with a usable reply that is not whole, and why; truncated comes first."""
    usable = [reply for reply in read_replies(folder) if reply.outcome in USABLE and not reply.superseded]
    overlong = {reply.key: _OVERLONG for reply in usable if reply.overlong}
    return overlong | {reply.key: _TRUNCATED for reply in usable if reply.truncated}


def _arrays(
    folder: str | Path, usable: Sequence[_UsableCase], group_of: Callable[[str], str], left_out: dict[str, int]
) -> BothBranches:
    keys, gates = [case.key for case in usable], [case.gate for case in usable]
    by_case = _current_replies(folder, set(keys))
    first = gates[0]
    stages = _stages(folder, set(keys)) if first.intrinsic_reading in ("normalised", "printed") else set()
    pooled = len(stages) < 2
    mixed = (
        f"log-probabilities of {len(stages)} kinds ({', '.join(sorted(stages))} temperature) are not pooled: M and p "
        "count as unknown and their tests are off"
    )
    single = [total_tokens([r for r in by_case[key] if step_of(r.path) == "opening/agent/0"]) for key in keys]
    taus = (first.tau_d, first.tau_m if pooled else None, first.tau_p if pooled else None)
    # a gate that made all its tests does not record the setting
    skips_untested = any(gate.if_untested == "ignore" for gate in gates) or first.intrinsic_reading == "none"
    unknown = np.full(len(gates), np.nan)
    if not skips_untested:
        gates = [_of_all(gate) for gate in gates]
    return BothBranches(
        case_ids=tuple(case_id for case_id, _ in keys),
        groups=tuple(group_of(case_id) for case_id, _ in keys),
        d=np.array([gate.d for gate in gates], np.float64),
        m=np.array([gate.m for gate in gates], np.float64) if pooled else unknown,
        p=np.array([gate.p for gate in gates], np.float64) if pooled else unknown,
        c=np.array([gate.c for gate in gates], np.float64),
        skips_untested=skips_untested,
        may_skip=np.array([_may_skip(gate) for gate in gates], np.bool_),
        skip_right=np.array([case.skip_right for case in usable], np.bool_),
        debate_right=np.array([case.debate_right for case in usable], np.bool_),
        skip_tokens=_tokens(keys, by_case, "skip"),
        debate_tokens=_tokens(keys, by_case, "debate"),
        single_tokens=np.array(single, np.float64),
        taus=taus if first.when == "selective" else None,
        left_out=left_out,
        notes=() if pooled else (mixed,),
    )


def _of_all(gate: GateDecided) -> GateDecided:
    """The gate with M and mean p unknown unless the p of every agent is known."""
    return gate.model_copy(update={"m": None, "p": None}) if None in gate.intrinsic else gate


def _may_skip(gate: GateDecided) -> bool:
    equal = gate.answers_equal or not gate.require_unanimity
    return equal and (gate.complete or not gate.require_complete) and gate.comparable


def _current_replies(folder: str | Path, keys: set[CaseKey]) -> dict[CaseKey, list[ReplyRow]]:
    found: dict[CaseKey, list[ReplyRow]] = {key: [] for key in keys}
    for reply in read_replies(folder):
        if reply.key in found and not reply.superseded:
            found[reply.key].append(reply)
    return found


def _tokens(keys: Sequence[CaseKey], replies: Mapping[CaseKey, list[ReplyRow]], branch: str) -> Floats:
    totals = [total_tokens([r for r in replies[key] if not measurement_only(r.path, branch)]) for key in keys]
    return np.array(totals, np.float64)


def _stages(folder: str | Path, keys: set[CaseKey]) -> set[str]:
    """Stages of the openings' log-probabilities."""
    return {
        row["logprob_stage"]
        for row in read_table(folder, "turns", ["logprob_stage"]).to_pylist()
        if row["logprob_stage"] and row["path"].startswith("opening/") and (row["case_id"], row["attempt"]) in keys
    }
