"""Calls of models among rows of `turns`, on columns: which were paid for here, and whose usage is unknown.

`ReplyColumns` has the same for the replies of a whole record.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from moot.protocols.errors import UNSENT

USED = ("prompt_tokens", "completion_tokens")

CALL_COLUMNS = ["role", "model", "outcome", "failure", "unconfirmed_attempts", "reused_from", *USED]
"""Columns of a row."""


def paid_calls(turns: pa.Table) -> pa.Table:
    """The rows for which a model was called here: no person's, none that was reused, none that was never sent."""
    role, failure, reused = (pc.fill_null(turns[name], "") for name in ("role", "failure", "reused_from"))
    paid = pc.and_(pc.not_equal(role, "person"), pc.not_equal(failure, UNSENT))
    return turns.filter(pc.and_(paid, pc.equal(reused, "")))


def lacks_usage(calls: pa.Table) -> pa.ChunkedArray:
    """Whether each call may have used more than is known: a failure without a billed attempt has used nothing."""
    prompt, completion = (calls[name] for name in USED)
    return pc.and_(pc.or_(prompt.is_null(), completion.is_null()), pc.invert(_is_free(calls)))


def has_known_tokens(calls: pa.Table) -> pa.ChunkedArray:
    """Whether something is known of what each call used, if only that it was nothing."""
    prompt, completion = (calls[name] for name in USED)
    return pc.or_(pc.or_(prompt.is_valid(), completion.is_valid()), _is_free(calls))


def _is_free(calls: pa.Table) -> pa.ChunkedArray:
    failed = pc.equal(pc.fill_null(calls["outcome"], ""), "failed")
    return pc.and_(failed, pc.equal(pc.fill_null(calls["unconfirmed_attempts"], 0), 0))
