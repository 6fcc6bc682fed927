"""Probability of an answer under its model, from the log-probabilities at the answer's token."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from moot.metrics.disagreement import sigmoid_of_log_probability

MAX_BOUND_SHIFT: Final = 0.05
"""Maximum `bound_shift` (a difference of probabilities); above it the normalised probability is None."""

_IMPOSSIBLE: Final = -1000.0  # up to this: servers' placeholders for minus infinity (-9999 is common)
_SPACE_AND_QUOTES: Final = " \t\r\n\u00a0\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb"
_AMBIGUOUS: Final = object()


@dataclass(frozen=True, slots=True)
class AnswerProbability:
    """Probability of an answer, estimated from token log-probabilities.

    Attributes:
        normalised: probability of the answer among the labels, in [0, 1]; None if unknown.
        printed: `raw / (1 + raw)`, in [0, 0.5], the paper's sigma(log p); None if `raw` is None.
        raw: sum of the probabilities of all listed spellings of the answer's label, in [0, 1]; None if the answer was
            not located, or its token is ambiguous or has no known probability.
        bound_shift: maximum change of `normalised`, in [0, 1], if the unlisted and ambiguous mass were known; NaN if no
            label has a listed probability.
        mass: label -> sum of listed probabilities; a label that is not listed has no entry.
        label: the label that the tokens spell; None if they spell none.
        reason: why `normalised` is None; empty if it is a number.
    """

    normalised: float | None = None
    printed: float | None = None
    raw: float | None = None
    bound_shift: float = math.nan
    mass: dict[str, float] = field(default_factory=dict)
    label: str | None = None
    reason: str = ""


def answer_probability(
    tokens: Sequence[str],
    logprob: npt.NDArray[np.floating],
    alt_tokens: Sequence[str],
    alt_logprob: npt.NDArray[np.floating],
    answer_start: int,
    forms: Mapping[str, str],
) -> AnswerProbability:
    """Probability of the answer among the labels, from the alternatives listed at its token.

    Only one position is used: the token that covers `answer_start` or, if that contains only spaces and quotes, the
    next one that contains more. Every alternative there, and the chosen token once, counts for the label that it means,
    regardless of case, outer spaces and quotes:

    - A complete form of a label counts for that label.
    - A prefix of forms of exactly one label counts for that label (`N` of `N` + `o`).
    - A prefix of forms of several labels is ambiguous and counts for none. A complete form that continues as another
      label's form is ambiguous too (`Yes` and `yes, in part`; `1` and `10`), except within a word (`no` and `not
      sure`), where tokenisers use different tokens.

    `normalised = mass(answer's label) / sum of the masses of all labels`.

    The probability of an unlisted label is at most p_K, the smallest listed probability (except that of the chosen
    token, which some servers append whatever its rank; 1 if nothing else is listed). All unlisted labels together have
    at most `rest = max(0, 1 - sum of listed)`. `bound_shift` is the maximum change of `normalised` if these labels had
    `min(labels * p_K, rest)`, if the ambiguous mass belonged to the answer or to other labels, and if a chosen token of
    unknown probability had `min(p_K, rest)`. Unlisted spellings of listed labels are ignored.

    Args:
        tokens: the T tokens of the reply as text; their concatenation is the reply.
        logprob: `(T,)`, natural log-probability of each token.
        alt_tokens: T * K texts, first the K alternatives of position 0. They may include the chosen token, which is
            compared by its text.
        alt_logprob: `(T, K)`, NaN where fewer than K are listed. K may be 0.
        answer_start: offset in characters of the answer's first character in the concatenated tokens.
        forms: folded spelling -> label, for every spelling of every label; folded: without outer spaces and quotes, in
            lower case.

    Returns:
        See `AnswerProbability`. A log-probability that is NaN, infinite or at most -1000 is unknown and adds nothing;
        one above 0 counts as 0. Without alternatives, `raw` is the probability of the chosen token and `normalised` is
        None. With a single label `normalised` is 1.

    Raises:
        ValueError: if the shapes do not match, or `forms` is empty or has an empty spelling.

    Source: SELENE, intrinsic confidence, with sigma applied to the log-odds over the case's labels.

    >>> result = answer_probability(
    ...     ['{"answer": "', "Yes", '"}'], np.log([1.0, 0.6, 1.0]),
    ...     ["", "", "Yes", "no", "", ""], np.log([[1.0, 1.0], [0.6, 0.2], [1.0, 1.0]]),
    ...     answer_start=12, forms={"yes": "Yes", "no": "No"})
    >>> round(result.normalised, 3), round(result.raw, 3), round(result.printed, 3)
    (0.75, 0.6, 0.375)
    """
    width = _width(tokens, logprob, alt_tokens, alt_logprob)
    if not forms or "" in forms:
        raise ValueError("forms must have at least one spelling, and no empty one")
    located = _locate(tokens, answer_start)
    if located is None:
        return AnswerProbability(reason="no answer at the given place")
    at, lead = located
    label = _label_of_text(tokens, at, len(lead), forms)
    if label is None:
        return AnswerProbability(reason="the answer's text is none of the labels' spellings")

    chosen = tokens[at]
    strip = _SPACE_AND_QUOTES + "".join(c for c in lead if not c.isalnum())
    meaning = _meaning(chosen, lead, strip, forms)
    chosen_known = False
    listed_min = 1.0
    probabilities: dict[object, list[float]] = {}  # label, None (no label) or _AMBIGUOUS -> probabilities
    listed = _listed(alt_tokens, alt_logprob, at, width)
    for token, p in listed:
        if token == chosen:
            chosen_known = True
        elif p < listed_min:
            listed_min = p
        probabilities.setdefault(_meaning(token, lead, strip, forms), []).append(p)
    if not chosen_known and (own := _known(float(logprob[at]))) is not None:
        chosen_known = True
        probabilities.setdefault(meaning, []).append(own)

    labels = dict.fromkeys(forms.values())
    mass = {each: math.fsum(probabilities[each]) for each in labels if each in probabilities}
    if meaning != label:
        reason = f"the token {chosen!r} does not tell which label follows"
        return AnswerProbability(mass=mass, label=label, reason=reason)
    raw = min(1.0, mass[label]) if chosen_known else None
    total = math.fsum(mass.values())
    rest = max(0.0, 1.0 - math.fsum(p for group in probabilities.values() for p in group))
    share, bound_shift = _bounded(
        answer=mass.get(label, 0.0),
        total=total,
        ambiguous=math.fsum(probabilities.get(_AMBIGUOUS, ())),
        unlisted_others=min(len(labels.keys() - mass.keys() - {label}) * listed_min, rest),
        unlisted_answer=0.0 if chosen_known else min(listed_min, rest),
    )
    reason = ""
    if not listed:
        reason = "no alternatives listed"
    elif total <= 0.0:
        reason = "no label has a known probability"
    elif bound_shift > MAX_BOUND_SHIFT:
        reason = f"what is not listed or ambiguous could move it by {bound_shift:.3f}"
    return AnswerProbability(
        normalised=None if reason else share,
        printed=None if raw is None else sigmoid_of_log_probability(raw),
        raw=raw,
        bound_shift=bound_shift,
        mass=mass,
        label=label,
        reason=reason,
    )


def _width(
    tokens: Sequence[str],
    logprob: npt.NDArray[np.floating],
    alt_tokens: Sequence[str],
    alt_logprob: npt.NDArray[np.floating],
) -> int:
    """Number K of alternatives; the four shapes are validated."""
    width = int(alt_logprob.shape[1]) if alt_logprob.ndim == 2 else 0
    if logprob.shape != (len(tokens),):
        raise ValueError(f"{len(tokens)} tokens but log-probabilities of shape {logprob.shape}")
    if alt_logprob.size != len(tokens) * width or len(alt_tokens) != len(tokens) * width:
        raise ValueError(
            f"{len(tokens)} tokens, {len(alt_tokens)} alternatives and alternative "
            f"log-probabilities of shape {alt_logprob.shape} do not fit"
        )
    return width


def _listed(
    alt_tokens: Sequence[str], alt_logprob: npt.NDArray[np.floating], at: int, width: int
) -> list[tuple[str, float]]:
    """Alternatives of one position with known probabilities."""
    if not width:
        return []
    here = zip(alt_tokens[at * width : (at + 1) * width], alt_logprob[at].tolist(), strict=True)
    return [(token, p) for token, value in here if (p := _known(value)) is not None]


def _known(value: float) -> float | None:
    """Probability of a log-probability; None if it is unknown."""
    if not _IMPOSSIBLE < value < math.inf:  # also catches NaN
        return None
    return math.exp(min(value, 0.0))


def _locate(tokens: Sequence[str], answer_start: int) -> tuple[int, str] | None:
    """First informative token of the answer, and the part of that token before the answer."""
    if answer_start < 0:
        return None
    start = 0
    for at, token in enumerate(tokens):
        end = start + len(token)
        if end > answer_start:
            cut = max(0, answer_start - start)
            if token[cut:].strip(_SPACE_AND_QUOTES):
                return at, token[:cut]
        start = end
    return None


def _label_of_text(tokens: Sequence[str], at: int, cut: int, forms: Mapping[str, str]) -> str | None:
    """Label of the longest form that the reply spells, as whole words, from the answer on."""
    longest = max(map(len, forms))
    text = tokens[at][cut:].lstrip(_SPACE_AND_QUOTES)
    for following in tokens[at + 1 :] if len(text) <= longest else ():
        text += following
        if len(text) > longest:
            break
    return _spelled(text.casefold(), forms)


def _spelled(text: str, forms: Mapping[str, str]) -> str | None:
    """Label of the longest form with which a folded text begins as whole words."""
    best = ""
    for form in forms:
        if len(form) > len(best) and text.startswith(form):
            after = text[len(form) : len(form) + 1]
            if not (after.isalnum() and form[-1].isalnum()):
                best = form
    return forms[best] if best else None


def _meaning(token: str, lead: str, strip: str, forms: Mapping[str, str]) -> object:
    """Label that a token at the answer's position counts for; None for no label, or `_AMBIGUOUS`."""
    text = token.removeprefix(lead).lstrip(strip).casefold()
    if not text:
        return _AMBIGUOUS  # only spaces and quotes: any label may follow
    size = len(text)
    becomes = {form for form in forms if len(form) > size and form.startswith(text)}
    whole = _spelled(text, forms)
    if whole is None:
        labels = {forms[form] for form in becomes}
    else:
        in_word = text[-1].isalpha()
        labels = {forms[form] for form in becomes if not (in_word and form[size].isalpha())} | {whole}
    if len(labels) > 1:
        return _AMBIGUOUS
    return labels.pop() if labels else None


def _bounded(
    *, answer: float, total: float, ambiguous: float, unlisted_others: float, unlisted_answer: float
) -> tuple[float, float]:
    """The answer's proportion of the listed mass, and its maximum change; NaN without listed mass."""
    if total <= 0.0:
        return math.nan, math.nan
    share = answer / total
    low = answer / (total + ambiguous + unlisted_others)
    gain = ambiguous + unlisted_answer
    high = (answer + gain) / (total + gain)
    return share, max(share - low, high - share)
