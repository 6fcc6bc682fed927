"""Reply of agent C as a model: statements of the evidence on the claim, with quotes, and conflicts."""

from __future__ import annotations

from pydantic import BaseModel, Field

from moot.protocols.asked_lengths import asked
from moot.protocols.replies import Reply
from moot.protocols.reply_limits import longest

_NAME = 12
_MOST = 100


class Fact(BaseModel):
    """What a statement rests on.

    Attributes:
        item: the number of an item of evidence, such as `E1`.
        quote: words of that item.
    """

    item: str = Field(json_schema_extra=longest(_NAME))
    quote: str = Field(json_schema_extra=asked("quote"))


class StatementReply(BaseModel):
    """What the evidence says on one point of the claim.

    Attributes:
        text: in one sentence.
        facts: what it rests on.
    """

    text: str = Field(min_length=1, json_schema_extra=asked("statement_text"))
    facts: list[Fact] = Field(max_length=_MOST, json_schema_extra=asked("facts"))


class ConflictReply(BaseModel):
    """Places of two items that cannot both be true: the items' numbers, and the words of each."""

    item_1: str = Field(json_schema_extra=longest(_NAME))
    quote_1: str = Field(json_schema_extra=asked("quote"))
    item_2: str = Field(json_schema_extra=longest(_NAME))
    quote_2: str = Field(json_schema_extra=asked("quote"))


class OneItemReply(Reply):
    """A single item of evidence in order. Nothing in it is taken on trust: see `synthesis.grounded`.

    Attributes:
        statements: what the evidence says of the claim, point by point.
    """

    statements: list[StatementReply] = Field(max_length=_MOST, json_schema_extra=asked("statements"))


class ContextReply(OneItemReply):
    """Several items of evidence in order.

    Attributes:
        conflicts: what in it is at odds; empty where nothing is.
    """

    conflicts: list[ConflictReply] = Field(default=[], max_length=_MOST, json_schema_extra=asked("conflicts"))
