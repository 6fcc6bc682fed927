"""Transcript of a debate, from the record."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import compress, islice
from pathlib import Path
from typing import Any

import msgspec

from moot.actors.agent.attempt import LENGTH
from moot.actors.record.rows import USAGE, tokens_of
from moot.actors.record.schema import ASKED, CANCELLED, RESUMED
from moot.actors.record.tables import read_table
from moot.deploy.results.record.readers import decode_json, read_as, withdrawn_cases
from moot.deploy.results.record.run_info import read_run_info
from moot.deploy.results.rounds.round_trace import build_round_trace
from moot.deploy.results.text import cases as number_of_cases
from moot.deploy.results.text import finite_or_none, visible_line
from moot.deploy.results.transcripts.debate_tables import TURN_TEXTS, DebateTables, rows_of_cases
from moot.deploy.results.transcripts.stages import group_by_stage
from moot.deploy.results.transcripts.views import (
    AttemptCost,
    EventView,
    JudgedReplyView,
    State,
    Transcript,
    TurnView,
    VerdictView,
)
from moot.protocols.errors import UNSENT, ConfigError
from moot.protocols.events import RoundFigures


def build_transcript(
    folder: str | Path, case_id: str, attempt: int | None = None, *, under_way: bool = False
) -> Transcript:
    """Transcript of one debate, finished or not.

    Args:
        folder: the run's folder.
        case_id: the id of a case of the run.
        attempt: number of the attempt; None for the latest with a verdict, or for the latest if none has one.
        under_way: whether the latest attempt is read instead, although it may have no verdict yet.

    Raises:
        ConfigError: the case (the message names the nearest ones) or the attempt is unknown.
        RecordError: the folder has no run or cannot be read.
    """
    debates = _Debates(DebateTables(folder, [case_id]), [case_id])
    if case_id not in debates.cases:
        raise unknown_case(case_id, read_table(folder, "cases", [])["case_id"].to_pylist())
    return debates.transcript(case_id, attempt, under_way=under_way)


def build_transcripts(tables: DebateTables, case_ids: Iterable[str]) -> Iterator[Transcript]:
    """Transcripts of the attempts that count of several debates, without unregistered cases; each table is read once.

    Raises:
        RecordError: the folder has no run or cannot be read.
    """
    wanted = list(case_ids)
    debates = _Debates(tables, wanted)
    return (debates.transcript(case_id) for case_id in wanted if case_id in debates.cases)


class _Debates:
    """Rows of some debates, by case.

    Attributes:
        cases: rows of the registered cases, by case id.
    """

    def __init__(self, tables: DebateTables, case_ids: Sequence[str]) -> None:
        self._info = read_run_info(tables.folder)
        self.cases = {row["case_id"]: row for row in rows_of_cases(tables.cases, case_ids)}
        self._turns = _by_case(rows_of_cases(tables.turns, case_ids))
        self._events = _by_case(rows_of_cases(tables.events, case_ids))
        self._verdicts = _by_case(rows_of_cases(tables.verdicts, case_ids))
        self._withdrawn = withdrawn_cases(tables.events)

    def transcript(self, case_id: str, attempt: int | None = None, *, under_way: bool = False) -> Transcript:
        """Transcript of an attempt at a registered case; see `build_transcript`.

        Raises:
            ConfigError: the attempt is unknown.
        """
        case, turns, events = self.cases[case_id], self._turns.get(case_id, []), self._events.get(case_id, [])
        verdicts = {row["attempt"]: row for row in self._verdicts.get(case_id, [])}
        attempts = sorted({row["attempt"] for row in (*turns, *events)} | set(verdicts)) or [0]
        if attempt is None:
            attempt = max(verdicts) if verdicts and not under_way else attempts[-1]
        elif attempt not in attempts:
            known = ", ".join(map(str, attempts))
            raise ConfigError(f"case {visible_line(case_id)!r} has no attempt {attempt}: it has {known}")
        turns = [row for row in turns if row["attempt"] == attempt]
        events = [row for row in events if row["attempt"] == attempt]
        recorded = [EventView(kind=e["kind"], path=e["path"], data=decode_json(e["data"])) for e in events]
        asked = Counter(event.path for event in recorded if event.kind == "asked")
        views = [_turn(row, asked) for row in turns]
        verdict = _verdict(verdicts[attempt]) if attempt in verdicts else None
        return Transcript(
            schema_version=self._info.schema_version,
            run=self._info.name,
            simulated=self._info.simulated or any(view.model == "simulated" for view in views),
            case_id=case_id,
            attempt=attempt,
            attempts=attempts,
            state=_state(verdict, recorded, views, is_withdrawn=case_id in self._withdrawn),
            **_filled(case, ("question", "title", "passage", "invalid"), ""),
            **_filled(case, ("labels", "choices", "aliases", "accepted", "ratings"), []),
            judged=JudgedReplyView.model_validate_json(case["judged"]) if case["judged"] else None,
            gold=case["gold"],
            sections=group_by_stage(views, [e for e in recorded if e.kind not in _UNSHOWN], _began(turns, events)),
            trace=build_round_trace(figures for _, figures in read_as(recorded, RoundFigures)),
            verdict=verdict,
            cost=_cost(views, turns),
        )


def _by_case(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    by_case: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_case.setdefault(row["case_id"], []).append(row)
    return by_case


def unknown_case(case_id: str, known: Sequence[str], where: str = "the run") -> ConfigError:
    """Error for an unknown case; its message names the nearest ones."""
    wanted = visible_line(case_id)
    names = ", ".join(repr(visible_line(each)) for each in nearest(wanted, known))
    near = f", nearest {names}" if names else ""
    return ConfigError(f"unknown case {wanted!r}: {where} has {number_of_cases(len(known))}{near}")


def _began(turns: Iterable[dict[str, Any]], events: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Unix time of the earliest row by path: for a reply, that of its ask if known."""
    first: dict[str, float] = {}
    for row in (*turns, *events):
        if row["at"] is not None:
            first[row["path"]] = min(row["at"], first.get(row["path"], row["at"]))
    return first


def _filled(row: Mapping[str, Any], names: Iterable[str], empty: Any) -> dict[str, Any]:
    """Columns of a row, with `empty` for null."""
    return {name: row[name] or empty for name in names}


def _turn(row: dict[str, Any], asked: Counter[str]) -> TurnView:
    data = decode_json(row["data"]) if row["data"] is not None else None
    return TurnView(
        **{name: row[name] for name in ("path", "answer", "prompt_tokens", "completion_tokens", "superseded")},
        **_filled(row, TURN_TEXTS, ""),
        confidence=finite_or_none((data or {}).get("confidence")),
        p=row["p_normalised"],
        data=data,
        asked=asked[row["path"]],
        reused=row["reused_from"] is not None,
        truncated=row["finish_reason"] == LENGTH,
    )


def _verdict(row: dict[str, Any]) -> VerdictView:
    return VerdictView(
        **{name: row[name] for name in ("answer", "confidence", "correct")},
        **_filled(row, ("how", "failure", "error"), ""),
        distribution=msgspec.json.decode(row["distribution"]) if row["distribution"] else None,
        rounds=row["rounds"] or 0,
        flags=row["flags"] or [],
        payload=decode_json(row["payload"]),
        failed=bool(row["failed"]),
    )


def _state(
    verdict: VerdictView | None, events: Iterable[EventView], turns: Iterable[TurnView], *, is_withdrawn: bool
) -> State:
    if verdict is not None:
        return "failed" if verdict.failed else "finished"
    if is_withdrawn:
        return "withdrawn"
    decided = {turn.path for turn in turns}
    waits = any(event.kind == "parked" and event.path not in decided for event in events)
    return "parked" if waits else "open"


def _cost(turns: Sequence[TurnView], rows: Sequence[dict[str, Any]]) -> AttemptCost:
    is_paid = [turn.role != "person" and not turn.reused and turn.failure != UNSENT for turn in turns]
    paid = list(compress(turns, is_paid))
    return AttemptCost(
        calls=len(paid),
        tokens=_at_least(paid),
        tokens_reused=_at_least([turn for turn in turns if turn.reused]),
        calls_without_usage=sum(None in tokens_of(*(row[name] for name in USAGE)) for row in compress(rows, is_paid)),
    )


def _at_least(turns: Sequence[TurnView]) -> int | None:
    """Lower bound of the tokens: the sum of the known ones; None when no reply has a known usage."""
    unknown = all(turn.prompt_tokens is None and turn.completion_tokens is None for turn in turns)
    return None if turns and unknown else sum((t.prompt_tokens or 0) + (t.completion_tokens or 0) for t in turns)


_UNSHOWN = frozenset({ASKED, CANCELLED, RESUMED})
"""Kinds of events that a transcript does not list."""

_SHOWN = 3
_CONSIDERED = 100_000
_COMPARED = 1_000
_LENGTH = 80
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Closest matches of a name among known ones, best first; leading zeros of numbers are ignored.

    >>> nearest("sample-7", [f"sample-{i:03}" for i in range(1, 73)])
    ['sample-007', 'sample-017', 'sample-027']

    Only the first 100,000 names are considered, and only the 1,000 with the best upper bound are compared in full.
    """
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(_plain(name))
    names = sorted(islice(known, _CONSIDERED))

    def upper_bound(each: str) -> float:
        matcher.set_seq1(_plain(each))
        return matcher.quick_ratio()

    def similarity(each: str) -> float:
        matcher.set_seq1(_plain(each))
        return matcher.ratio()

    if len(names) > _COMPARED:
        names = heapq.nlargest(_COMPARED, names, key=upper_bound)
    return heapq.nlargest(_SHOWN, names, key=similarity)


def _plain(name: str) -> str:
    return _ZEROS.sub("", name[:_LENGTH].casefold())
