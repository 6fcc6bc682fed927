"""Table of a run's cases, computed on columns: a million cases take seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, overload

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.rows import truncated_rows
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.replies import cut_cases
from moot.deploy.results.glossary import ending_words, failure_words
from moot.deploy.results.record import RunRecord, data_frame, latest_rows
from moot.deploy.results.report.blocks import Block, Heading, Note, Table
from moot.deploy.results.report.display import DisplayMixin, FrozenModel
from moot.deploy.results.report.render import banner
from moot.deploy.results.text import cases as number_of_cases
from moot.deploy.results.text import count, finite_or_none, shell_path
from moot.deploy.results.transcript import unknown_case
from moot.protocols.errors import ConfigError, unknown_name

NOT_BEGUN = "not begun"
"""Outcome of a registered case whose debate has not begun."""

_CELL = (30, 120)
_COLUMN = 3_000_000
"""Fewest and most characters of a text that the table shows, and about how many a column may have."""

DEBATED = "debated"
"""Column that is 1 for a case that finished after a debate, else 0."""

_VOTES = 200_000
"""Cases of which the share off the majority is computed, at most: it reads every reply."""

_VERDICT = ["answer", "how", "rounds", "confidence", "failed", "failure", "correct", "debated", "payload"]
_VERDICT += ["prompt_tokens", "completion_tokens", "calls_without_usage"]


class CaseTable(NamedTuple):
    """The table, in the order of the task.

    Attributes:
        rows: columns `case`, `outcome`, `question`, `answer`, `gold`, `how`, `rounds`, `confidence`, `disagreement`,
            `tokens`, `prompts` (`cut` if the server seems to have cut one), `failure`, and `debated`, by which a page
            chooses and which it does not show.
        disagreement: how it is measured: `d` of the first answers, `jsd` of the last distributions, or `majority`,
            the share of the first answers that differ from the most frequent one.
    """

    rows: pa.Table
    disagreement: str


def case_table(source: RunRecord | Path) -> CaseTable:
    """The table of a run's cases, each with the verdict of its latest attempt.

    Raises:
        RecordError: the record cannot be read.
    """
    record = RunRecord.of(source)
    cases = record.cases.select(["case_id", "index", "question", "gold"])
    verdicts = latest_rows(record.verdict_table).select(["case_id", "attempt", *_VERDICT])
    found = cases.join(verdicts, "case_id").sort_by([("index", "ascending"), ("case_id", "ascending")])
    failed = pc.fill_null(found["failed"], False)
    outcomes = _outcomes(found["failed"], found["correct"])
    measured, disagreement = _disagreement(record, found)
    columns = {
        "case": found["case_id"],
        "outcome": _without_begun(record, found["case_id"], outcomes),
        "question": _questions(found["question"]),
        "answer": clipped(found["answer"]),
        "gold": clipped(found["gold"]),
        "how": _in_words(found["how"]),
        "rounds": pc.if_else(failed, None, found["rounds"]),
        "confidence": found["confidence"],
        "disagreement": disagreement,
        "tokens": _tokens(found),
        "prompts": pc.if_else(pc.is_in(found["case_id"], value_set=cut_cases(record)), "cut", None),
        "failure": pc.if_else(failed, found["failure"], None),
        DEBATED: pc.fill_null(found["debated"], False).cast(pa.int8()),
    }
    return CaseTable(pa.table(columns).combine_chunks(), measured)


def _outcomes(failed: pa.ChunkedArray, correct: pa.ChunkedArray) -> pa.ChunkedArray:
    whether = [failed, correct, pc.invert(correct), failed.is_valid()]
    conditions = pc.make_struct(*(pc.fill_null(each, False) for each in whether))
    return pc.case_when(conditions, "failed", "right", "wrong", "unscored", "open")


def _without_begun(record: RunRecord, case_ids: pa.ChunkedArray, outcomes: pa.ChunkedArray) -> pa.ChunkedArray:
    """Outcomes in which a case without verdict is open only if it has a reply or an event, and was not withdrawn."""
    withdrawn = pc.is_in(case_ids, value_set=pa.array(record.withdrawn, pa.string()))
    outcomes = pc.if_else(withdrawn, "withdrawn", outcomes)
    is_open = pc.equal(outcomes, "open")
    if not pc.any(is_open).as_py():
        return outcomes
    of_open = pc.field("case_id").isin(case_ids.filter(is_open))
    tables = [read_table(record.folder, name, [], of_open)["case_id"] for name in ("turns", "events")]
    begun = pa.chunked_array([chunk for ids in tables for chunk in ids.chunks], pa.string())
    return pc.if_else(pc.and_(is_open, pc.invert(pc.is_in(case_ids, value_set=begun))), NOT_BEGUN, outcomes)


def _questions(questions: pa.ChunkedArray) -> pa.ChunkedArray:
    """The start of each question, on one line; lines that all questions begin with are left out."""
    questions = pc.fill_null(questions, "")
    after = _shared_lines(questions)
    starts = pc.utf8_slice_codeunits(questions, after, after + 2 * _CELL[1])
    return clipped(pc.binary_join(pc.utf8_split_whitespace(pc.utf8_trim_whitespace(starts)), " "))


def clipped(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts of a column, as much of each as there is room for."""
    fewest, most = _CELL
    width = min(most, max(fewest, _COLUMN // max(1, len(texts))))
    cut = pc.binary_join_element_wise(pc.utf8_slice_codeunits(texts, 0, width - 1), "…", "")
    return pc.if_else(pc.less_equal(pc.utf8_length(texts), width), texts, cut)


def _shared_lines(texts: pa.ChunkedArray) -> int:
    """Length in characters of the lines with which all texts begin; 0 for a single text."""
    if len(texts) < 2:
        return 0
    ends = pc.min_max(texts).as_py()
    low, high = ends["min"], ends["max"]
    differ = next((i for i, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
    return int(low.rfind("\n", 0, differ) + 1)


def _in_words(how: pa.ChunkedArray) -> pa.ChunkedArray:
    codes = how.combine_chunks().dictionary_encode()
    words = pa.array([ending_words(code) if code else None for code in codes.dictionary.to_pylist()], pa.string())
    return pa.chunked_array([words.take(codes.indices)])


def _tokens(verdicts: pa.Table) -> pa.ChunkedArray:
    """Tokens of the replies that a verdict rests on; null when one of them is unknown."""
    known = pc.equal(pc.fill_null(verdicts["calls_without_usage"], 0), 0)
    return pc.if_else(known, pc.add(verdicts["prompt_tokens"], verdicts["completion_tokens"]), None)


class _Payload(msgspec.Struct):
    """Disagreement in a verdict's payload."""

    d: Any = None
    jsd: Any = None


def _disagreement(record: RunRecord, verdicts: pa.Table) -> tuple[str, pa.ChunkedArray]:
    """How far agents were apart: D of the first answers, JSD of the last round, or the share off the majority."""
    read = msgspec.json.Decoder(_Payload).decode
    for key in ("d", "jsd"):
        if pc.any(pc.match_substring(pc.fill_null(verdicts["payload"], ""), f'"{key}":')).as_py():
            payloads, get = verdicts["payload"].to_pylist(), attrgetter(key)
            values = [finite_or_none(get(read(payload))) if payload else None for payload in payloads]
            if any(value is not None for value in values):
                return key, pa.chunked_array([pa.array(values, pa.float64())])
    if verdicts.num_rows > _VOTES:
        return "majority", pa.chunked_array([pa.nulls(verdicts.num_rows, pa.float64())])
    return "majority", _off_the_majority(record, verdicts)


def _off_the_majority(record: RunRecord, verdicts: pa.Table) -> pa.ChunkedArray:
    """The share of first answers other than the most frequent; of cases with two first answers or more."""
    turns = record.turns.select(["case_id", "attempt", "path", "answer", "superseded"])
    first = pc.and_(pc.match_substring_regex(turns["path"], r"^opening/agent/\d+$"), pc.is_valid(turns["answer"]))
    turns = turns.filter(pc.and_(first, pc.invert(turns["superseded"])))
    votes = turns.group_by(["case_id", "attempt", "answer"]).aggregate([([], "count_all")])
    counts = votes.group_by(["case_id", "attempt"]).aggregate([("count_all", "max"), ("count_all", "sum")])
    counts = counts.filter(pc.greater(counts["count_all_sum"], 1))
    share = pc.subtract(1.0, pc.divide(pc.cast(counts["count_all_max"], pa.float64()), counts["count_all_sum"]))
    shares = pa.table({"case_id": counts["case_id"], "attempt": counts["attempt"], "share": share})
    place = pa.array(range(verdicts.num_rows), pa.int64())
    keys = verdicts.select(["case_id", "attempt"]).append_column("place", place)
    return keys.join(shares, ["case_id", "attempt"]).sort_by("place")["share"]


Outcome = Literal["right", "wrong", "unscored", "failed", "open", "withdrawn"]
"""Outcome of a case: `unscored` has a verdict but nothing to compare it with, `open` and `withdrawn` have none."""

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class CaseColumn:
    """A column of the table.

    Attributes:
        name: id in a page.
        title: as it is shown.
        values: a text, a number or None for each case.
        note: what it means.
        coded: whether few values occur many times.
        hidden: whether the page reads it without showing it.
    """

    name: str
    title: str
    values: Sequence[str | float | None]
    note: str = ""
    coded: bool = False
    hidden: bool = False


_HEADS = {
    "case": ("Case", "", False),
    "outcome": ("Outcome", "", True),
    "question": ("Question", "", False),
    "answer": ("Answer", "", True),
    "gold": ("Gold", "the right answer; no model saw it", True),
    "how": ("How it ended", "", True),
    "rounds": ("Rounds", "", False),
    "confidence": ("Confidence", "", False),
    "disagreement": ("", "", False),
    "tokens": ("Tokens", "of the replies that the verdict rests on", False),
    "prompts": ("Prompts", "cut: the server seems to have read only a part of a prompt", True),
    "failure": ("Failure", "", True),
    DEBATED: ("Debated", "1 for a case that finished after a debate", False),
}
"""Title, note and whether few values occur many times, by column."""

_DISAGREEMENT = {
    "d": ("D", "disagreement of the first answers"),
    "jsd": ("JSD", "divergence of the last distributions"),
    "majority": ("Off majority", "share of the first answers that differ from the most frequent one"),
}

_ALWAYS = ("case", "question", "outcome")


class CaseHead(NamedTuple):
    """Title and meaning of a column of the table; see `CaseColumn`."""

    name: str
    title: str
    note: str
    coded: bool
    hidden: bool


def case_heads(table: CaseTable) -> list[CaseHead]:
    """The table's columns in order; one that has nothing for any case is left out."""
    heads = [CaseHead(name, *_HEADS[name], hidden=name == DEBATED) for name in table.rows.column_names]
    title, note = _DISAGREEMENT[table.disagreement]
    heads = [head._replace(title=title, note=note) if head.name == "disagreement" else head for head in heads]
    return [head for head in heads if head.name in _ALWAYS or table.rows[head.name].null_count < table.rows.num_rows]


def case_columns(run: RunRecord) -> list[CaseColumn]:
    """The table of a run's cases, in the order of the task, as values."""
    table = case_table(run)
    return [
        CaseColumn(head.name, head.title, table.rows[head.name].to_pylist(), head.note, head.coded, head.hidden)
        for head in case_heads(table)
    ]


def outcome(run: RunRecord, case_id: str) -> Outcome:
    """Outcome of a case, in one word."""
    verdict = run.by_case.get(case_id)
    if verdict is None:
        return run.without_verdict(case_id)
    if verdict.failed:
        return "failed"
    return "unscored" if verdict.correct is None else "right" if verdict.correct else "wrong"


def cases_data(columns: Iterable[CaseColumn]) -> dict[str, Any]:
    """The table as JSON values: numbers as they are, words that repeat as places in a list of words."""
    return {"columns": [_column_data(column) for column in columns]}


def _column_data(column: CaseColumn) -> dict[str, Any]:
    data: dict[str, Any] = {"name": column.name, "title": column.title, "note": column.note}
    if column.hidden:
        data["hidden"] = True
    if not column.coded:
        return data | {"values": _rounded(column.values)}
    words = {word: place for place, word in enumerate(dict.fromkeys(v for v in column.values if v is not None))}
    codes = [None if value is None else words[value] for value in column.values]
    return data | {"words": list(words), "values": codes}


def _rounded(values: Sequence[str | float | None]) -> Sequence[str | float | None]:
    """The values of a column, which are of one type."""
    if not isinstance(next((value for value in values if value is not None), None), float):
        return values
    return [round(value, _DIGITS) if isinstance(value, float) else value for value in values]


MOST = 50
"""Cases that a terminal lists; Markdown and JSON have all."""

KINDS: Mapping[str, str] = {
    "right": "the answer is right",
    "wrong": "the answer is wrong, or there is none although there is a gold label",
    "debated": "finished after a debate, not skipped by a gate or answered alone",
    "failed": "no verdict, because the debate failed",
    "truncated": "a reply ended at its token limit",
}
"""Kinds of cases that a list can be narrowed to, with what each means."""

_ON_ONE_LINE = (
    "case",
    "answer",
    "gold",
    "outcome",
    "how it ended",
    "prompts",
    "truncated",
    "rounds",
    "tokens",
    "question",
)

_EXCLUSIVE = (("right", "wrong", "failed"), ("debated", "failed"))


class CaseRow(FrozenModel):
    """A case of a run.

    Attributes:
        case_id: its id.
        question: the start of the question, on one line.
        gold: the right answer, which no model saw; None without one.
        answer: the verdict's answer; None where it has none.
        outcome: `right`, `wrong`, `unscored`, `failed`, or without a verdict `open` or `withdrawn`.
        ending: how it ended, as text: for a failed case its failure; None while it is open.
        rounds: of its debate; None for a failed or open case.
        confidence: the verdict's; None when unknown.
        disagreement: how far its agents were apart, in the measure of its protocol; None when unknown.
        tokens: of the replies that the verdict rests on; None when unknown.
        debated: whether it finished after a debate.
        prompt_cut: whether the server seems to have cut the prompt of a reply, in the attempt that counts.
        truncated: replies that ended at their token limit, of the attempt that counts.
    """

    case_id: str
    question: str
    gold: str | None
    answer: str | None
    outcome: Outcome
    ending: str | None
    rounds: int | None
    confidence: float | None
    disagreement: float | None
    tokens: int | None
    debated: bool
    truncated: int
    prompt_cut: bool = False


class CaseList(DisplayMixin, FrozenModel):
    """Cases of a run in the order of its task: a sequence of `CaseRow`, which `cases["sample-007"]` finds by their ids.

    Attributes:
        kinds: what the list is narrowed to; empty for all cases.
        total: cases of the run, those that have not begun included.
        cases: the rows.
    """

    schema_version: int
    run: str
    simulated: bool
    kinds: list[str]
    total: int
    cases: list[CaseRow]

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[CaseRow]:  # type: ignore[override]
        return iter(self.cases)

    def __contains__(self, case: object) -> bool:
        return any(case in (row, row.case_id) for row in self.cases)

    @overload
    def __getitem__(self, case: int | str) -> CaseRow: ...
    @overload
    def __getitem__(self, case: slice) -> list[CaseRow]: ...
    def __getitem__(self, case: int | str | slice) -> CaseRow | list[CaseRow]:
        """The case at a place or with an id, or the cases of a slice.

        Raises:
            ConfigError: no case of the list has this id; the message names the nearest.
        """
        if not isinstance(case, str):
            return self.cases[case]
        found = next((row for row in self.cases if row.case_id == case), None)
        if found is None:
            raise unknown_case(case, [row.case_id for row in self.cases], "the list")
        return found

    def to_pandas(self) -> Any:
        """The cases as a pandas DataFrame, one row each.

        Raises:
            ConfigError: pandas is not installed.
        """
        return data_frame(pa.table({name: [getattr(row, name) for row in self.cases] for name in CaseRow.model_fields}))

    def only(self, *kinds: str) -> CaseList:
        """The cases that are of all these kinds: `right`, `wrong`, `debated`, `failed`, `truncated`.

        Raises:
            ConfigError: there is no such kind, or no case can be of all of them.
        """
        for kind in kinds:
            if kind not in KINDS:
                raise unknown_name("kind of cases", kind, KINDS)
        wanted = list(dict.fromkeys((*self.kinds, *kinds)))
        for exclusive in _EXCLUSIVE:
            if len(both := [kind for kind in wanted if kind in exclusive]) > 1:
                raise ConfigError(f"no case is both {both[0]} and {both[1]}: leave one out")
        rows = [row for row in self.cases if all(_is_of(row, kind) for kind in kinds)]
        return self.model_copy(update={"kinds": wanted, "cases": rows})

    def display_name(self) -> str:
        """See `DisplayMixin`."""
        return f"{len(self.cases):,} of {number_of_cases(self.total)} of {self.run}"

    def report_blocks(self) -> list[Block]:
        """See `DisplayMixin`; as many cases as a terminal lists."""
        return case_list_blocks(self, MOST)


def case_list(run: RunRecord | str | Path) -> CaseList:
    """Lists the cases of a run, finished or not.

    Raises:
        RecordError: there is no run in the folder, or it cannot be read.
    """
    run = run if isinstance(run, RunRecord) else RunRecord(run)
    info = run.info
    values = {column.name: column.values for column in case_columns(run)}
    nothing: Sequence[None] = [None] * len(values["case"])
    names = ("question", "gold", "answer", "outcome", "rounds", "confidence", "disagreement", "tokens")
    columns = {name: values.get(name, nothing) for name in names}
    truncated = _truncated(run)
    rows = []
    endings = zip(values.get("how", nothing), values.get("failure", nothing), strict=True)
    others = (values.get(DEBATED, nothing), values.get("prompts", nothing))
    columns_of_all = (values["case"], endings, *others, *columns.values())
    for case_id, (how, failure), of_debate, prompts, *row in zip(*columns_of_all, strict=True):
        found: dict[str, Any] = dict(zip(names, row, strict=True))
        if found["outcome"] == NOT_BEGUN:
            found["outcome"] = "open"
        rows.append(
            CaseRow(
                **found,
                case_id=case_id,
                ending=failure_words(failure) if failure else how,
                debated=bool(of_debate),
                truncated=truncated.get(str(case_id), 0),
                prompt_cut=prompts is not None,
            )
        )
    return CaseList(
        schema_version=info.schema_version,
        run=info.name,
        simulated=info.simulated,
        kinds=[],
        total=max(len(rows), info.cases or 0),
        cases=rows,
    )


def _truncated(run: RunRecord) -> dict[str, int]:
    """By case, the replies that ended at their token limit, of the attempts that count."""
    turns = run.turns
    cut = turns.filter(pc.and_not(truncated_rows(turns), turns["superseded"]))
    return Counter(run.rows_that_count(cut)["case_id"].to_pylist())


def _is_of(row: CaseRow, kind: str) -> bool:
    if kind == "truncated":
        return row.truncated > 0
    return row.debated if kind == "debated" else row.outcome == kind


def case_list_blocks(found: CaseList, most: int | None = None) -> list[Block]:
    """Report blocks of a list of cases.

    Args:
        most: cases that are listed; all when None.
    """
    shown = found.cases[:most]
    what = f" {' and '.join(found.kinds)}" if found.kinds else ""
    title = f"{len(found.cases):,} of {number_of_cases(found.total)}{what or ' have begun'}"
    if not what and len(found.cases) == found.total:
        title = number_of_cases(found.total)
    blocks: list[Block] = [Heading(f"Cases of run {found.run}", 1), *banner(found.simulated), Note(title, "strong")]
    if shown:
        blocks.append(_table(shown, with_truncated="truncated" in found.kinds))
    if more := len(found.cases) - len(shown):
        blocks.append(Note(f"{more:,} more: --format md or json lists all", "dim"))
    if shown:
        blocks.append(Note(f"a debate: moot show {shell_path(found.run)} CASE", "dim"))
    return blocks


def _table(rows: Sequence[CaseRow], *, with_truncated: bool) -> Table:
    mixed = len({row.outcome for row in rows}) > 1
    columns = {
        "case": [row.case_id for row in rows],
        "question": [row.question for row in rows],
        "gold": [row.gold or "-" for row in rows],
        "answer": ["-" if row.answer is None else row.answer for row in rows],
        "outcome": [row.outcome for row in rows],
        "how it ended": [row.ending or "no verdict yet" for row in rows],
        "rounds": ["-" if row.rounds is None else str(row.rounds) for row in rows],
        "tokens": [count(row.tokens) for row in rows],
    }
    if any(row.prompt_cut for row in rows):
        columns["prompts"] = ["cut" if row.prompt_cut else "-" for row in rows]
    if with_truncated:
        columns["truncated"] = [str(row.truncated) for row in rows]
    names = [name for name in _ON_ONE_LINE if name in columns]
    terse = Table(
        "",
        names,
        list(zip(*(columns[name] for name in names), strict=True)),
        one_line=True,
        optional=[names.index(name) for name in ("tokens", "rounds", "outcome") if not (name == "outcome" and mixed)],
    )
    return Table("", tuple(columns), list(zip(*columns.values(), strict=True)), terse=terse, case_column=0)
