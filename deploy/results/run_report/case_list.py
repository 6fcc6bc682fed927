"""A run's cases as rows, all of them or those of some kinds: `moot show RUN --wrong`, and `Run.cases` in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.agent.attempt import LENGTH
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.endings import failure_words
from moot.deploy.results.record.readers import data_frame
from moot.deploy.results.report.blocks import Block, Heading, Note, Table
from moot.deploy.results.report.display import DisplayMixin
from moot.deploy.results.report.render import banner
from moot.deploy.results.run_report.case_table import DEBATED, NOT_BEGUN
from moot.deploy.results.run_report.cases import Outcome, case_columns
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.text import cases as number_of_cases
from moot.deploy.results.text import count, shell_path
from moot.deploy.results.transcripts.transcript import unknown_case
from moot.protocols.errors import ConfigError, unknown_name

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


def case_list(run: RunData | str | Path) -> CaseList:
    """Lists the cases of a run, finished or not.

    Raises:
        RecordError: there is no run in the folder, or it cannot be read.
    """
    run = run if isinstance(run, RunData) else RunData(run)
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


def _truncated(run: RunData) -> dict[str, int]:
    """By case, the replies that ended at their token limit, of the attempts that count."""
    turns = run.turns
    cut = turns.filter(pc.and_(pc.equal(turns["finish_reason"], LENGTH), pc.invert(turns["superseded"])))
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
