"""Kinds of rows of a stage: cases to debate, or replies to judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from moot.actors.record.debate_result import DebateResult
from moot.deploy.runs.task import task_from_cases
from moot.protocols.case import LabelledCase
from moot.protocols.errors import UserError
from moot.protocols.judge_panel.payload import PanelPayload
from moot.protocols.tasks.replies import replies_in_memory

FAILED_ROW = "invalid_case"
"""Failure of a row that is not a valid case."""

_COSTS = (
    ("calls", pa.int64()),
    ("prompt_tokens", pa.int64()),
    ("completion_tokens", pa.int64()),
    ("calls_without_usage", pa.int64()),
    ("cost_usd", pa.float64()),
    ("failure", pa.string()),
    ("error", pa.string()),
    ("reused", pa.bool_()),
)


class RowKind(Protocol):
    """Conversion of rows to cases, and of results to columns."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of the added columns, the same for every batch."""
        ...

    def case(self, row: Mapping[str, Any]) -> LabelledCase:
        """Case of a row.

        Raises:
            UserError: the row is invalid.
        """
        ...

    def result_row(self, result: DebateResult) -> dict[str, Any]:
        """Values of the added columns for a result."""
        ...


@dataclass(frozen=True)
class DebateRows:
    """Rows that are questions or claims to debate."""

    @property
    def schema(self) -> pa.Schema:
        """See `RowKind.schema`."""
        return pa.schema(
            [
                ("case_id", pa.string()),
                ("answer", pa.string()),
                ("confidence", pa.float64()),
                ("distribution", pa.string()),
                ("how", pa.string()),
                ("rounds", pa.int64()),
                ("payload", pa.string()),
                *_COSTS,
            ]
        )

    def case(self, row: Mapping[str, Any]) -> LabelledCase:
        """See `RowKind.case`."""
        return next(task_from_cases([row]).cases())

    def result_row(self, result: DebateResult) -> dict[str, Any]:
        """See `RowKind.result_row`."""
        return {
            "answer": result.answer,
            "confidence": result.confidence,
            "distribution": None if result.distribution is None else _json(result.distribution),
            "how": result.how,
            "rounds": result.rounds,
            "payload": _json(result.payload),
            **_costs(result),
        }


@dataclass(frozen=True)
class JudgmentRows:
    """Rows that are replies to judge.

    Attributes:
        dimensions: the rubric's dimensions.
    """

    dimensions: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """See `RowKind.schema`."""
        scores = [(f"{what}_{name}", pa.float64()) for name in self.dimensions for what in ("score", "spread")]
        overall = [
            ("quality", pa.float64()),
            ("flag", pa.float64()),
            ("marks", pa.int64()),
            ("missing", pa.int64()),
        ]
        return pa.schema([("case_id", pa.string()), *scores, *overall, *_COSTS])

    def case(self, row: Mapping[str, Any]) -> LabelledCase:
        """See `RowKind.case`."""
        return next(replies_in_memory([row]).cases())

    def result_row(self, result: DebateResult) -> dict[str, Any]:
        """See `RowKind.result_row`."""
        row = _costs(result)
        if (panel := PanelPayload.read(result.payload)) is not None:
            row |= {"quality": panel.quality, "flag": panel.flag, "marks": panel.judgments, "missing": panel.missing}
            for name, figures in panel.dimensions.items():
                row |= {f"score_{name}": figures.mean, f"spread_{name}": figures.spread}
        return row


def rejected_row(error: UserError) -> dict[str, Any]:
    """Values of the added columns for an invalid row, which costs nothing."""
    expected = getattr(error, "expected", "")
    field = getattr(error, "field", "")
    return {"failure": FAILED_ROW, "error": f"`{field}`: {expected}" if field and expected else expected or str(error)}


def _costs(result: DebateResult) -> dict[str, Any]:
    return {
        "case_id": result.case_id,
        "calls": result.calls,
        "prompt_tokens": result.prompt_tokens,
        "completion_tokens": result.completion_tokens,
        "calls_without_usage": result.calls_without_usage,
        "cost_usd": result.cost_usd,
        "failure": result.failure or None,
        "error": result.error or None,
        "reused": result.reused,
    }


def _json(data: Mapping[str, Any]) -> str:
    return msgspec.json.encode(data, order="sorted").decode()
