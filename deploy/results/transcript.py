"""Transcripts: the replies and events of debates by stage, with case, verdict and cost."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import compress, islice
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.debate_result import WITHDRAWN
from moot.actors.record.parts import groups_with
from moot.actors.record.rows import USAGE, call_of, is_truncated, step_of, tokens_of
from moot.actors.record.schema import ASKED, CANCELLED, RESUMED
from moot.actors.record.tables import of_cases, read_table
from moot.deploy.results.figures.round_trace import build_round_trace
from moot.deploy.results.protocol_parts import stages
from moot.deploy.results.record import decode_json
from moot.deploy.results.recorded_data import (
    AttemptCost,
    EventView,
    JudgedReplyView,
    Section,
    State,
    Transcript,
    TurnView,
    VerdictView,
    numbered_places,
)
from moot.deploy.results.references import scored_verdicts
from moot.deploy.results.run_info import read_run_info
from moot.deploy.results.text import cases as number_of_cases
from moot.deploy.results.text import finite_or_none, natural_sort_key, visible_line
from moot.protocols.errors import UNSENT, ConfigError
from moot.protocols.events import RoundFigures

Row = dict[str, Any]
"""Row of a table of the record, by column."""

TURN_TEXTS = ("role", "model", "text", "p_reason", "outcome", "failure", "error", "reading")
"""Text columns of `turns` in a transcript; null becomes an empty text."""

_TURNS = [*TURN_TEXTS, "data", "answer", "p_normalised", "prompt_tokens", "completion_tokens"]
_TURNS += ["reused_from", "finish_reason", "unconfirmed_attempts", "at"]
_REQUESTS = ["messages", "image_hashes", "template", "template_hash", "fingerprint", "temperature", "top_p"]
_REQUESTS += ["max_tokens", "logprob_stage"]


class DebateTables:
    """Tables of a record with the rows of some debates; each table is read once, when first needed.

    Args:
        folder: the run's folder.
        case_ids: case ids of the debates.
        with_requests: whether `turns` includes the columns of the requests.
    """

    def __init__(self, folder: str | Path, case_ids: Collection[str], *, with_requests: bool = False) -> None:
        self.folder = folder
        self._only, self._groups = of_cases(case_ids), groups_with(case_ids)
        self._columns = {"turns": _TURNS + (_REQUESTS if with_requests else []), "events": ["data", "at"]}
        self._tables: dict[str, pa.Table] = {}

    def rows(self, table: str, case_ids: Collection[str]) -> dict[str, list[Row]]:
        """Rows of some of the cases by case id, in the order of the record; verdicts are scored by today's rule.

        Raises:
            RecordError: the folder has no run or cannot be read.
        """
        if table not in self._tables:
            found = read_table(self.folder, table, self._columns.get(table), self._only, self._groups)
            self._tables[table] = scored_verdicts(found, self.folder) if table == "verdicts" else found
        rows = self._tables[table]
        by_case: dict[str, list[Row]] = {}
        for row in rows.filter(pc.is_in(rows["case_id"], pa.array(case_ids, pa.string()))).to_pylist():
            by_case.setdefault(row["case_id"], []).append(row)
        return by_case


_AGENT, _AFTER_ALL = re.compile(r"\bagent/(\d+)"), 1000
_CRIT = re.compile(r"crit/(round/\d+/.*)")
_ASSESSMENT = re.compile(r"assessment/(\w+)")

_Stage = tuple[tuple[int, int, str], str]
"""Sort key of a stage, and its title."""


def _sections(turns: Iterable[TurnView], events: Iterable[EventView], began: Mapping[str, float]) -> list[Section]:
    """Sections of replies and events by stage, in the stages' order.

    If a reply's path belongs to no stage (of a user's protocol), sections are in order of time, and paths without a
    stage start a section whenever their first part changes.

    Args:
        turns: the replies.
        events: the events.
        began: Unix time of the earliest row by path.
    """
    events = list(events)
    rounds = filter(None, (event.read_as(RoundFigures) for event in events))
    last_opens = any(_is_reversed(figures.order or ()) for figures in rounds)
    turns = sorted(
        turns, key=lambda each: (natural_sort_key(_by_speaker(step_of(each.path), last_opens)), not each.superseded)
    )
    # Events of a whole stage come after events of its parts.
    events = sorted(
        events, key=lambda each: ((*natural_sort_key(each.path), (2, 0, "")), each.kind != "round", each.kind)
    )
    if not all(_is_known(_stage(turn.path)) for turn in turns):
        return _by_time(turns, events, began)
    sections: dict[_Stage, Section] = {}
    everything: list[TurnView | EventView] = [*turns, *events]
    for each in everything:
        _add(each, sections.setdefault(stage := _stage(each.path), _section(stage)))
    return [_ordered(section) for _, section in sorted(sections.items(), key=lambda item: item[0])]


def _is_reversed(order: Sequence[str]) -> bool:
    """Whether a round's speaking order is the reverse order of the agents."""
    return len(order) > 1 and list(order) == sorted(order, key=natural_sort_key, reverse=True)


def _by_speaker(path: str, last_opens: bool) -> str:
    """Sort key of a path by speaking order; with `last_opens`, the last agent speaks first.

    >>> _by_speaker("round/1/agent/2", True), _by_speaker("round/1/agent/2", False)
    ('round/1/agent/998', 'round/1/agent/2')
    """
    return _AGENT.sub(lambda found: f"agent/{_AFTER_ALL - int(found[1])}", path) if last_opens else path


def _by_time(turns: Iterable[TurnView], events: Iterable[EventView], began: Mapping[str, float]) -> list[Section]:
    sections: list[tuple[_Stage, Section]] = []
    of_stage: dict[_Stage, Section] = {}
    of_path: dict[str, Section] = {}

    def at(each: TurnView | EventView) -> float:
        path = step_of(each.path)
        return began.get(path, began.get(each.path, inf))

    everything: list[TurnView | EventView] = [*turns, *events]
    for each in sorted(everything, key=at):
        path = step_of(each.path)
        stage = _stage(path)
        section = of_path.get(path) or (of_stage.get(stage) if _is_known(stage) else None)
        if section is None:
            if not sections or sections[-1][0] != stage:
                sections.append((stage, _section(stage)))
            section = sections[-1][1]
        of_stage[stage] = of_path[path] = section
        _add(each, section)
    return [_ordered(section) for _, section in sections]


def _section(stage: _Stage) -> Section:
    return Section(title=stage[1], turns=[], events=[])


def _add(each: TurnView | EventView, section: Section) -> None:
    if isinstance(each, TurnView):
        section.turns.append(each)
    else:
        section.events.append(each)


def _ordered(section: Section) -> Section:
    """The section with each reply after the unreadable and stopped replies of the same ask."""
    places = {turn.path: i for i, turn in reversed(list(enumerate(section.turns)))}
    section.turns.sort(key=lambda t: (places.get(step_of(t.path), places[t.path]), _stage_of_reply(t.path)))
    return section


def _stage_of_reply(path: str) -> tuple[int, int, str]:
    """Sort key of the replies to one ask: by call, stopped replies before the complete one."""
    step, call = step_of(path), call_of(path)
    if path == step:
        return (2, 0, path)
    return (0 if call in (None, step) else 1, 1 if call is None else 0, path)


def step_words(path: str) -> str:
    """Text of a step: its stage, and its position in it.

    >>> step_words("opening/agent/0"), step_words("round/2/agent/1"), step_words("gate"), step_words("mine/agent/0")
    ('Independent answers, agent 0', 'Round 2, agent 1', 'Gate', 'mine, agent 0')
    >>> step_words("judge/candidate/0/judge/1/variant/2/pass/0"), step_words("round/0/agent/1")
    ('Judging, candidate 0, judge 1, evidence variant 2, pass 0', 'Round 0, agent 1')
    """
    step = step_of(path)
    _, title = _stage(step)
    places = numbered_places(step)
    in_title = places and title.partition(":")[0].endswith(f" {places[0].rpartition(' ')[2]}")
    return ", ".join([title, *(places[1:] if in_title else places)])


def _stage(path: str) -> _Stage:
    if read := _CRIT.match(path):
        (rank, number, _), title = _stage(read[1])
        return (rank, number, "crit"), f"{title}: the judges on its arguments"
    if (judged := _ASSESSMENT.match(path)) and _is_known(stage := _stage(judged[1])):
        (rank, number, _), title = stage
        return (rank, number, "assessment"), f"{title}: the judges on its reasoning"
    for rank, (_, pattern, title) in enumerate(stages()):
        if found := pattern.match(path):
            number = int(found[1]) if "{}" in title else 0
            return (rank, number, ""), title.format(number)
    first = path.partition("/")[0]
    return (len(stages()), 0, first), first


def _is_known(stage: _Stage) -> bool:
    return stage[0][0] < len(stages())


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
        self.cases = {case_id: rows[-1] for case_id, rows in tables.rows("cases", case_ids).items()}
        self._turns, self._events, self._verdicts = (
            tables.rows(table, case_ids) for table in ("turns", "events", "verdicts")
        )

    def transcript(self, case_id: str, attempt: int | None = None, *, under_way: bool = False) -> Transcript:
        """Transcript of an attempt at a registered case; see `build_transcript`.

        Raises:
            ConfigError: the attempt is unknown.
        """
        case, turns, events = self.cases[case_id], self._turns.get(case_id, []), self._events.get(case_id, [])
        verdicts = {row["attempt"]: _verdict(row) for row in self._verdicts.get(case_id, [])}
        is_withdrawn = _is_withdrawn(events)
        attempts = sorted({row["attempt"] for row in (*turns, *events)} | set(verdicts)) or [0]
        if attempt is None:
            attempt = max(verdicts) if verdicts and not under_way else attempts[-1]
        elif attempt not in attempts:
            known = ", ".join(map(str, attempts))
            raise ConfigError(f"case {visible_line(case_id)!r} has no attempt {attempt}: it has {known}")
        turns = [row for row in turns if row["attempt"] == attempt]
        events = [row for row in events if row["attempt"] == attempt]
        recorded = [EventView(kind=e["kind"], path=e["path"], data=decode_json(e["data"])) for e in events]
        asked = Counter(event.path for event in recorded if event.kind == ASKED)
        views = [_turn(row, asked) for row in turns]
        verdict = verdicts.get(attempt)
        return Transcript(
            schema_version=self._info.schema_version,
            run=self._info.name,
            simulated=self._info.simulated or any(view.model == "simulated" for view in views),
            case_id=case_id,
            attempt=attempt,
            attempts=attempts,
            state=_state(verdict, recorded, views, is_withdrawn=is_withdrawn),
            **_filled(case, ("question", "title", "passage", "invalid"), ""),
            **_filled(case, ("labels", "choices", "aliases", "accepted", "ratings"), []),
            judged=JudgedReplyView.model_validate_json(case["judged"]) if case["judged"] else None,
            gold=case["gold"],
            sections=_sections(views, [e for e in recorded if e.kind not in _UNSHOWN], _began(turns, events)),
            trace=build_round_trace(filter(None, (event.read_as(RoundFigures) for event in recorded))),
            verdict=verdict,
            cost=_cost(views, turns),
        )


def _is_withdrawn(events: Iterable[Row]) -> bool:
    """Whether a case's latest debate was withdrawn and not submitted again."""
    ended = [row for row in events if row["kind"] in (CANCELLED, RESUMED)]
    return any(row["kind"] == CANCELLED and decode_json(row["data"]).get("why") == WITHDRAWN for row in ended[-1:])


def unknown_case(case_id: str, known: Sequence[str], where: str = "the run") -> ConfigError:
    """Error for an unknown case; its message names the nearest ones."""
    wanted = visible_line(case_id)
    names = ", ".join(repr(visible_line(each)) for each in nearest(wanted, known))
    near = f", nearest {names}" if names else ""
    return ConfigError(f"unknown case {wanted!r}: {where} has {number_of_cases(len(known))}{near}")


def _began(turns: Iterable[Row], events: Iterable[Row]) -> dict[str, float]:
    """Unix time of the earliest row by path: for a reply, that of its ask if known."""
    first: dict[str, float] = {}
    for row in (*turns, *events):
        if row["at"] is not None:
            first[row["path"]] = min(row["at"], first.get(row["path"], row["at"]))
    return first


def _filled(row: Mapping[str, Any], names: Iterable[str], empty: Any) -> dict[str, Any]:
    """Columns of a row, with `empty` for null."""
    return {name: row[name] or empty for name in names}


def _turn(row: Row, asked: Counter[str]) -> TurnView:
    data = decode_json(row["data"]) if row["data"] is not None else None
    return TurnView(
        **{name: row[name] for name in ("path", "answer", "prompt_tokens", "completion_tokens", "superseded")},
        **_filled(row, TURN_TEXTS, ""),
        confidence=finite_or_none((data or {}).get("confidence")),
        p=row["p_normalised"],
        data=data,
        asked=asked[row["path"]],
        reused=row["reused_from"] is not None,
        truncated=is_truncated(row),
    )


def _verdict(row: Row) -> VerdictView:
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


def _cost(turns: Sequence[TurnView], rows: Sequence[Row]) -> AttemptCost:
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
