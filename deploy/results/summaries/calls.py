"""Model calls among rows of `turns`, computed on columns: the paid ones, and those with unknown usage.

`ReplyColumns` computes the same for the replies of a whole record.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.rows import used_nothing
from moot.protocols.errors import UNSENT

USED = ("prompt_tokens", "completion_tokens")

CALL_COLUMNS = ["role", "model", "outcome", "failure", "unconfirmed_attempts", "reused_from", *USED]
"""Columns of `turns` that these functions read."""


def paid_calls(turns: pa.Table) -> pa.Table:
    """Rows for which this run called a model: not a person's, not reused, and sent."""
    role, failure, reused = (pc.fill_null(turns[name], "") for name in ("role", "failure", "reused_from"))
    paid = pc.and_(pc.not_equal(role, "person"), pc.not_equal(failure, UNSENT))
    return turns.filter(pc.and_(paid, pc.equal(reused, "")))


def lacks_usage(calls: pa.Table) -> pa.ChunkedArray:
    """Whether the usage of each call is unknown in part; a failed call without a billed attempt has used nothing."""
    prompt, completion = (calls[name] for name in USED)
    return pc.and_(pc.or_(prompt.is_null(), completion.is_null()), pc.invert(_is_free(calls)))


def has_known_tokens(calls: pa.Table) -> pa.ChunkedArray:
    """Whether the usage of each call is known at least in part; that of a free call is known."""
    prompt, completion = (calls[name] for name in USED)
    return pc.or_(pc.or_(prompt.is_valid(), completion.is_valid()), _is_free(calls))


def _is_free(calls: pa.Table) -> pa.Array:
    failed = pc.equal(pc.fill_null(calls["outcome"], ""), "failed")
    return pa.array(used_nothing(failed, pc.fill_null(calls["unconfirmed_attempts"], 0)))
