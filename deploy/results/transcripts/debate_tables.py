"""Tables of a record, restricted to some debates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.parts import groups_with
from moot.actors.record.tables import of_cases, read_table
from moot.deploy.results.record.references import scored_verdicts

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
        self.case_ids = case_ids
        self._turn_columns = _TURNS + (_REQUESTS if with_requests else [])
        self._groups = groups_with(case_ids)

    @cached_property
    def cases(self) -> pa.Table:
        """The registered cases."""
        return self._read("cases", None)

    @cached_property
    def turns(self) -> pa.Table:
        """The replies."""
        return self._read("turns", self._turn_columns)

    @cached_property
    def tokens(self) -> pa.Table:
        """Tokens of the replies."""
        return self._read("tokens", None)

    @cached_property
    def events(self) -> pa.Table:
        """The events."""
        return self._read("events", ["data", "at"])

    @cached_property
    def verdicts(self) -> pa.Table:
        """The verdicts, scored by the current rule; see `scored_verdicts`."""
        return scored_verdicts(self._read("verdicts", None), self.folder)

    def _read(self, table: str, columns: Sequence[str] | None) -> pa.Table:
        return read_table(self.folder, table, columns, of_cases(self.case_ids), self._groups)


def rows_of_cases(table: pa.Table, case_ids: Collection[str]) -> list[dict[str, Any]]:
    """Rows of some cases."""
    rows: list[dict[str, Any]] = table.filter(pc.is_in(table["case_id"], pa.array(case_ids, pa.string()))).to_pylist()
    return rows
