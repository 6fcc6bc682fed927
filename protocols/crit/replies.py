"""Reply types of a judge of a document: its reasons and rival reasons, each with two scores."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import ConfigDict, Field

from moot.protocols.asked_lengths import asked
from moot.protocols.marks import Mark, Marked
from moot.protocols.replies import Reply
from moot.protocols.reply_limits import longest, most

_MOST = 100


def _without_description(schema: dict[str, Any]) -> None:
    schema.pop("description", None)


class Argument(Marked):
    """A reason or a rival reason, as a judge sees it.

    Attributes:
        text: the reason in one sentence.
        why: what makes it strong or weak, and its source trusted or not: said before the marks, which follow from it.
        validity: how well it speaks for the claim, or as a rival against it, if it is true; 0 to 10. Also taken when
            written `8/10` or `80%`, which `repairs` then says.
        credibility: how far its source can be trusted; 0 to 10, read as `validity` is.
        is_claim: whether it needs reasons of its own.
        contradicts_facts: whether it says the opposite of a given fact.
    """

    # The text above is for people: a vendor would be sent it with every call.
    model_config = ConfigDict(json_schema_extra=_without_description)

    marks: ClassVar[tuple[str, ...]] = ("validity", "credibility")

    text: str = Field(min_length=1, json_schema_extra=asked("reason"))
    why: str = Field(default="", json_schema_extra=longest(160))
    validity: Mark
    credibility: Mark
    is_claim: bool = False
    contradicts_facts: bool = False


class Reading(Reply):
    """A judge's reading of one document.

    Attributes:
        claim: what the document argues for; may be empty when it argues for nothing.
        reasons: what the document brings forward for it; empty when it brings nothing.
        rivals: the reasons against it.
        justification: why the reasons carry the claim or do not.
        reflection: where else, or under what other circumstances, the argument holds or fails (the source's last step).
    """

    claim: str = Field(json_schema_extra=longest(200))
    reasons: list[Argument] = Field(max_length=_MOST, json_schema_extra=most(5, "max_reasons"))
    rivals: list[Argument] = Field(max_length=_MOST, json_schema_extra=most(4, "max_rivals"))
    justification: str = Field(min_length=1, json_schema_extra=asked("justification"))
    reflection: str = Field(json_schema_extra=asked("reflection"))
