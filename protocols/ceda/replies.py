"""Reply types of debaters and judges: a message with its stance; points of agreement, a summary, and a verdict."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationError, WrapValidator
from pydantic.json_schema import SkipJsonSchema

from moot.protocols.asked_lengths import asked
from moot.protocols.ceda.stance import Relation, relation_of
from moot.protocols.claims import CLAIM_ALIASES, CLAIM_LABELS, SUPPORTED
from moot.protocols.replies import Reply, share_of_percent
from moot.protocols.reply_limits import longest
from moot.protocols.text.folding import fold
from moot.protocols.text.labels import read_label

_SPELLINGS = (
    (*CLAIM_ALIASES[0], "1.0", "not wrong", "not false"),
    (*CLAIM_ALIASES[1], "0.0", "unsupported", "not correct", "not true", "untrue", "refuted", "contradicted"),
)
_NO_VERDICT = frozenset({"", "null", "none", "n/a", "undecided", "unknown"})
_GLOSSED = re.compile(r"\s*([01])\s*\(([^()]+)\)\s*")
_LEAST_PERCENT, _WHOLE = 10.0, 100.0


def _one_or_nought(value: Any) -> Any:
    """`"1"`, `true`, `1.0` and `"1 (correct)"` are 1, and likewise for 0; `"null"` and "undecided" are no verdict."""
    if isinstance(value, bool | float):
        return int(value) if value in (0, 1) else value
    if not isinstance(value, str):
        return value
    if fold(value) in _NO_VERDICT:
        return None
    glossed = _GLOSSED.fullmatch(value)
    spellings = glossed.groups() if glossed else (value,)
    readings = [read_label(each, CLAIM_LABELS, aliases=_SPELLINGS) for each in spellings]
    labels = {reading.label for reading in readings if reading is not None and reading.leniency in ("", "letter")}
    return int(SUPPORTED in labels) if len(labels) == 1 and None not in readings else value


def _share(value: Any) -> float | None:
    """`"85%"` and 85 are 0.85; what is no probability is None, and so is 8, which may be one of ten."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        text = str(value).strip()
        number = share_of_percent(text) if text.endswith("%") else float(text)
    except ValueError:
        return None
    if not text.endswith("%") and _LEAST_PERCENT < number <= _WHOLE:
        number /= _WHOLE
    return number if 0.0 <= number <= 1.0 else None


def _texts(value: Any) -> list[str]:
    """One text is a list of one; what is no text is left out."""
    texts = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return [text for text in texts if isinstance(text, str) and text.strip()]


def _or_none(value: Any, read: Callable[[Any], bool | None]) -> bool | None:
    try:
        return read(value)
    except ValidationError:
        return None


Point = Annotated[str, Field(json_schema_extra=longest(120))]
Texts = Annotated[tuple[Point, ...], BeforeValidator(_texts), Field(json_schema_extra=asked("agreed"))]


Stated = Literal["supports", "denies", "unclear"]
"""Where a debater says that it stands on the claim."""

_STATED: dict[str, Stated] = {
    **dict.fromkeys(("supports", "support", "supported", "agree", "agrees", "true", "correct"), "supports"),
    **dict.fromkeys(("denies", "deny", "denied", "hallucinated", "disagree", "disagrees", "false", "wrong"), "denies"),
    **dict.fromkeys(("unclear", "unknown", "undecided", "neither"), "unclear"),
}


def _relation(value: Any) -> Relation | None:
    return relation_of(value) if isinstance(value, str) else None


def _stated(value: Any) -> Stated | None:
    return _STATED.get(fold(value)) if isinstance(value, str) else None


class MessageReply(Reply):
    """A debater's message. Only its text must be readable; a reply that is no JSON is all text.

    Attributes:
        says: what it says of the message before it, or of the claim; None when it does not say.
        text: why, in a sentence or two.
        stance: where that leaves it on the claim itself; None when it does not say.
    """

    plain_text_is: ClassVar[str] = "text"
    prose: ClassVar[str] = "text"

    says: Annotated[Relation | SkipJsonSchema[None], BeforeValidator(_relation)] = None
    text: str = Field(min_length=1, json_schema_extra=asked("message"))
    stance: Annotated[Stated | SkipJsonSchema[None], BeforeValidator(_stated)] = None


class JudgeReply(Reply):
    """A judge's reading of a debate. Only the summary and the verdict must be readable: the rest is advice.

    Attributes:
        agreed, disputed: the points on which they agree and disagree; empty when they cannot be read.
        summary: in a few sentences; what a classifier reads.
        consensus: whether the debaters have come to agree; None when the judge does not say.
        verdict: 1 for a supported claim, 0 for a hallucinated one, None for none.
        confidence: stated probability that the verdict is right, in [0, 1]; None when the judge states none.
    """

    prose: ClassVar[str] = "summary"

    agreed: Texts = ()
    disputed: Texts = ()
    summary: str = Field(min_length=1, json_schema_extra=asked("summary"))
    consensus: Annotated[bool | None, WrapValidator(_or_none)] = None
    verdict: Annotated[Literal[0, 1] | None, BeforeValidator(_one_or_nought)]
    confidence: Annotated[Annotated[float, Field(ge=0.0, le=1.0)] | None, BeforeValidator(_share)] = None

    @property
    def classifier_text(self) -> str:
        """What a classifier reads: the summary, then the points on which the debaters agree and disagree, if any."""
        points = (("Agreed", self.agreed), ("Disputed", self.disputed))
        return "\n".join((self.summary, *(f"{name}: {'; '.join(said)}" for name, said in points if said)))

    @property
    def p_hallucinated(self) -> float | None:
        """The stated probability that the claim is hallucinated; None without a verdict or a stated confidence."""
        if self.verdict is None or self.confidence is None:
            return None
        return 1.0 - self.confidence if self.verdict == 1 else self.confidence
