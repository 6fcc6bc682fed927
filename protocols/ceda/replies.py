"""What a judge replies: where the debaters agree and disagree, a summary, and a verdict on the claim."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from moot.protocols.claims import CLAIM_ALIASES, CLAIM_LABELS, SUPPORTED
from moot.protocols.labels import canonical_label
from moot.protocols.replies import Reply


def _one_or_nought(value: Any) -> Any:
    """`"1"`, `true`, `1.0` and `"(1) correct"` are 1, and likewise for 0; `"null"` is no verdict."""
    if isinstance(value, bool | float):
        return int(value) if value in (0, 1) else value
    if not isinstance(value, str):
        return value
    if value.strip().lower() in ("null", "none", ""):
        return None
    label = canonical_label(value, CLAIM_LABELS, aliases=CLAIM_ALIASES)
    return value if label is None else int(label == SUPPORTED)


def _share(value: Any) -> Any:
    """`"80%"` is 0.8, `"null"` nothing."""
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in ("null", "none", ""):
            return None
        return float(text.rstrip("% ")) / 100.0 if text.endswith("%") else value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


def _texts(value: Any) -> Any:
    """One text is a list of one, nothing an empty list."""
    if value is None or value == "":
        return []
    return [value] if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]


class JudgeReply(Reply):
    """A judge's reading of a debate.

    Attributes:
        consensus: whether the debaters have come to agree; None when the judge leaves it out.
        agreed, disputed: the points on which they agree and disagree.
        summary: in a few sentences; what a classifier reads.
        verdict: 1 for a supported claim, 0 for a hallucinated one, None for none.
        confidence: stated probability that the verdict is right, in [0, 1]; None when the judge states none.
    """

    consensus: bool | None = None
    agreed: Texts = ()
    disputed: Texts = ()
    summary: str = Field(min_length=1)
    verdict: Annotated[Literal[0, 1] | None, BeforeValidator(_one_or_nought)]
    confidence: Annotated[Annotated[float, Field(ge=0.0, le=1.0)] | None, BeforeValidator(_share)] = None

    @property
    def p_hallucinated(self) -> float | None:
        """The stated probability that the claim is hallucinated; None without a verdict or a stated confidence."""
        if self.verdict is None or self.confidence is None:
            return None
        return 1.0 - self.confidence if self.verdict == 1 else self.confidence
