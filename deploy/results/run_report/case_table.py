"""Table of a run's cases, computed on columns: a million cases take seconds."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.tables import read_table
from moot.deploy.results.endings import ending_words
from moot.deploy.results.record.prompt_cuts import cut_cases
from moot.deploy.results.record.readers import latest_rows
from moot.deploy.results.record.run_record import RunRecord
from moot.deploy.results.text import finite_or_none

NOT_BEGUN = "not begun"
"""Outcome of a registered case whose debate has not begun."""

WITHDRAWN = "withdrawn"
"""Outcome of a case whose debate was cancelled by its submitter."""

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
    outcomes = pc.if_else(withdrawn, WITHDRAWN, outcomes)
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
