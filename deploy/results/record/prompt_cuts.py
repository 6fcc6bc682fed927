"""Replies to prompts of which the server seems to have read only a part: those marked, and those with equal counts."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.prompt_cuts import LEAST_CONTEXT
from moot.actors.record.rows import PROMPT_CUT
from moot.actors.record.tables import read_table
from moot.deploy.results.record.run_record import RunRecord, once_per_record

_COMPARED = 20
"""Cases whose prompts are compared."""

_UNIT = 256
"""Contexts are a multiple of this many tokens, as a rule."""

_AT_UNIT, _ELSEWHERE = (2, 1.05), (4, 1.5)
"""Fewest different lengths of prompts, and least ratio of the longest to the shortest, that show with an equal count
that a server cuts them: at a multiple of `_UNIT` a coincidence is rare."""


@once_per_record
def cut_prompts(record: RunRecord) -> pa.Array:
    """Whether the prompt of each row of `turns` seems to have been cut.

    Besides the replies with the mark `prompt_cut`, these are the replies with a model's largest count of prompt tokens,
    if prompts of clearly different lengths have that count: it is the server's context.
    """
    turns = record.turns
    cut = pc.match_substring(pc.fill_null(turns["reading"], ""), PROMPT_CUT)
    counts = pc.coalesce(turns["prompt_tokens_stated"], turns["prompt_tokens"])
    for model in turns["model"].unique().drop_null().to_pylist():
        of_model = pc.equal(turns["model"], model)
        most = pc.max(counts.filter(of_model)).as_py()
        if most is not None and most >= LEAST_CONTEXT:
            at_most = pc.fill_null(pc.and_(of_model, pc.equal(counts, most)), False)
            if _is_context(record, turns.filter(at_most), most):
                cut = pc.or_(cut, at_most)
    return cut.combine_chunks() if isinstance(cut, pa.ChunkedArray) else cut


def cut_cases(record: RunRecord) -> pa.Array:
    """Ids of the cases whose attempt that counts has a reply to a cut prompt."""
    turns = record.turns.filter(cut_prompts(record))
    turns = record.rows_that_count(turns.filter(pc.invert(turns["superseded"])))
    return turns["case_id"].unique()


def _is_context(record: RunRecord, rows: pa.Table, count: int) -> bool:
    """Whether the prompts of rows with an equal count differ clearly in length."""
    if len(rows["case_id"].unique()) < 2:
        return False
    lengths = set(_prompt_lengths(record, rows))
    fewest, ratio = _ELSEWHERE if count % _UNIT else _AT_UNIT
    return len(lengths) >= fewest and max(lengths) >= ratio * min(lengths)


def _prompt_lengths(record: RunRecord, rows: pa.Table) -> Iterator[int]:
    """Characters of the prompts of rows, of a few cases."""
    cases = rows["case_id"].unique()[:_COMPARED]
    wanted = set(zip(*(rows[name].to_pylist() for name in _KEY), strict=True))
    found = read_table(record.folder, "turns", ["messages"], pc.field("case_id").isin(cases))
    for *key, messages in zip(*(found[name].to_pylist() for name in (*_KEY, "messages")), strict=True):
        if tuple(key) in wanted and messages is not None:
            yield len(messages)


_KEY = ("case_id", "attempt", "path")
