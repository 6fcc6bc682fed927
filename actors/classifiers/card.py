"""Model card of a classifier: `classifier.json` in its folder, with the head's weights.

Plain JSON of bounded size. Each field is validated when the card is read; nothing in it is ever evaluated.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    model_serializer,
    model_validator,
)

from moot.actors.record.referenced_files import CLASSIFIER_CARD, MOST_CARD_BYTES, content_digest
from moot.protocols.errors import ConfigError
from moot.protocols.regular_files import cause, read_regular
from moot.protocols.validation_messages import expected_value

CARD = CLASSIFIER_CARD
BODY = "body"
"""The folder of the fine-tuned sentence encoder, of the kind `setfit`."""

MOST_BYTES = MOST_CARD_BYTES
_MOST_CASES = 500_000
_MOST_DIMENSIONS = 16_384

Kind = Literal["logistic", "setfit"]
Recipe = Literal["short", "published"]
"""SetFit training recipe: `short` trains on a sample of pairs, with frozen token embeddings and out-of-fold scaling;
the other one uses SetFit's defaults."""

Text = Annotated[str, StringConstraints(max_length=1000)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12,32}$")]
TextHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class _CardPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Head(_CardPart):
    """Classification head: logistic regression over unit vectors.

    Attributes:
        intercept, coefficients: of the log-odds of "hallucinated"; one coefficient per dimension.
        least_probability: lower bound of a predicted probability; the upper bound is 1 minus it. The number of training
            cases supports nothing more extreme.
    """

    intercept: float
    coefficients: Annotated[tuple[float, ...], Field(min_length=1, max_length=_MOST_DIMENSIONS)]
    least_probability: Annotated[float, Field(gt=0.0, le=0.5)]


class Body(_CardPart):
    """Fine-tuned encoder of a classifier of the kind `setfit`.

    Attributes:
        digest: of the folder, see `moot.actors.encoders.sentence_model`.
        base: identity of the base model.
        iterations, epochs: of the fine-tuning, as set for `moot train-classifier`; None for its default.
        recipe: the training recipe; `short` is omitted from the file, because older cards lack the field.
    """

    digest: Digest
    base: Text
    iterations: int | None
    epochs: int
    recipe: Recipe = "short"

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        if self.recipe == "short":
            del written["recipe"]
        return written


class MetricEstimate(_CardPart):
    """Estimate of a metric with its 95 % interval; None where unknown.

    Attributes:
        value: the figure, in [0, 1].
        low, high: the interval's ends.
    """

    value: Share | None
    low: Share | None = None
    high: Share | None = None


class HeldOutMetrics(_CardPart):
    """Metrics of one decision rule on held-out cases.

    Attributes:
        name: of the decision rule.
        n: number of summaries.
        accuracy, f1_hallucinated, f1_supported, macro_f1: of the answers; "undecided" counts as wrong.
        auroc: area under the ROC curve of p, over pairs within one fold.
        brier: mean squared error of p; None for bare answers.
        ece: expected calibration error of p as the probability of "hallucinated", over ten bins with equal numbers of
            summaries, as in a run's own figures; None for bare answers.
        ece_null_high: 97.5 % quantile of the error of a perfectly calibrated forecaster with these p.
    """

    name: Text
    n: int
    accuracy: MetricEstimate
    f1_hallucinated: MetricEstimate
    f1_supported: MetricEstimate
    macro_f1: MetricEstimate
    auroc: MetricEstimate
    brier: MetricEstimate | None = None
    ece: Share | None = None
    ece_null_high: Share | None = None


class Training(_CardPart):
    """Training data and settings.

    Attributes:
        digest: over the summaries, labels, groups and all settings; equal for equal training.
        n, hallucinated, cases, groups: numbers of summaries, of those of hallucinated claims, of cases (distinct by
            content), and of groups of related cases.
        left_out: number of cases that could not be used, by reason.
    """

    digest: Digest
    runs: tuple[Text, ...]
    tasks: tuple[Text, ...]
    protocols: tuple[Text, ...]
    simulated: bool
    n: int
    hallucinated: int
    cases: int
    groups: int
    left_out: dict[Text, int]
    folds: int
    seed: int


class ClassifierCard(_CardPart):
    """Model card of a classifier.

    Attributes:
        format: version of this file's format.
        kind: `logistic` reads vectors of the run's encoder, `setfit` of its own body.
        encoder: identity of the encoder whose vectors the head reads.
        ridge: L2 penalty of the head.
        versions: of the packages that trained it.
        trained_on: sorted hashes of the training claims, equal for every spelling of a claim; see
            `moot.protocols.claims.text_hash`.
        trained_on_groups: sorted hashes of the groups that the training references name.
        held_out: held-out metrics, those of the classifier itself first.
        digest: over everything else in the file.
    """

    format: Literal[1] = 1
    kind: Kind
    encoder: Text
    body: Body | None = None
    head: Head
    ridge: Annotated[float, Field(gt=0.0)]
    versions: dict[Text, Text]
    training: Training
    trained_on: Annotated[tuple[TextHash, ...], Field(max_length=_MOST_CASES)]
    trained_on_groups: Annotated[tuple[TextHash, ...], Field(max_length=_MOST_CASES)]
    held_out: Annotated[tuple[HeldOutMetrics, ...], Field(max_length=20)]
    digest: Digest = "0" * 32

    @model_validator(mode="after")
    def _a_body_of_its_own(self) -> ClassifierCard:
        if (self.body is not None) is not (self.kind == "setfit"):
            raise ValueError("a body is for the kind setfit only")
        return self

    def with_digest(self) -> ClassifierCard:
        """Copy of the card with its digest."""
        return self.model_copy(update={"digest": self._sum()})

    @property
    def digest_matches(self) -> bool:
        """Whether the digest matches the content."""
        return self.digest == self._sum()

    def _sum(self) -> str:
        return content_digest(self.model_dump(mode="json", exclude={"digest"}))

    def to_json(self) -> bytes:
        """JSON of the card: indented and deterministic."""
        return msgspec.json.format(msgspec.json.encode(self.model_dump(mode="json")), indent=1) + b"\n"


def known(value: float) -> float | None:
    """Value of a metric for the card: NaN becomes None.

    >>> known(0.5), known(float("nan"))
    (0.5, None)
    """
    return None if math.isnan(value) else float(value)


def read_card(folder: Path) -> ClassifierCard:
    """Reads the card of a classifier's folder.

    Raises:
        ConfigError: one line: the file is missing, too large, malformed, or was changed since it was written.
    """
    file = folder / CARD
    try:
        if not file.is_file():
            raise ConfigError(f"{folder}: no classifier there (no {CARD}); `moot train-classifier` makes one")
        card = ClassifierCard.model_validate(msgspec.json.decode(read_regular(file, MOST_BYTES)))
    except OSError as error:
        raise ConfigError(f"{file}: {cause(error)}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(f"{file}: `{where}`: {expected_value(first)}; train it again") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"{file}: expected JSON, as `moot train-classifier` writes it") from None
    if not card.digest_matches:
        raise ConfigError(f"{file}: it was changed since it was written; train the classifier again")
    return card
