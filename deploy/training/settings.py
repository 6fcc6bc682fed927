"""How a classifier is trained."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from moot.actors.classifiers.card import Recipe


class TrainingSettings(BaseModel):
    """How a classifier is trained.

    Attributes:
        setfit: name of the sentence encoder to fine-tune; None leaves the encoder as it is.
        encoder: whose vectors are read, without `setfit`; None for that of the runs.
        folds: of the held-out figures.
        seed: of everything drawn.
        iterations: pairs of one label, and of two, per summary, with `setfit`; None for `contrastive.PAIRS` in all.
        epochs: how often every pair is gone through, with `setfit`; None for once.
        recipe: how `setfit` fine-tunes: `short`, or `published`, which takes SetFit's own defaults; see `contrastive`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    setfit: str | None = None
    encoder: str | None = None
    folds: Annotated[int, Field(ge=2, le=20)] = 5
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    iterations: Annotated[int, Field(ge=1, le=50)] | None = None
    epochs: Annotated[int, Field(ge=1, le=20)] | None = None
    recipe: Recipe = "short"

    @model_validator(mode="after")
    def _what_goes_together(self) -> TrainingSettings:
        if self.setfit is not None and self.encoder is not None:
            raise ValueError("--encoder: with --setfit the fine-tuned encoder is the classifier's own; leave it out")
        if self.setfit is None and (self.iterations, self.epochs) != (None, None):
            raise ValueError("--iterations and --epochs go with --setfit only")
        if self.recipe == "published" and (self.setfit is None or (self.iterations, self.epochs) != (None, None)):
            raise ValueError(
                "--recipe published goes with --setfit, and says itself how many --iterations and --epochs"
            )
        return self

    def of_the_result(self, encoder: str) -> dict[str, Any]:
        """What the classifier hangs on besides the summaries.

        Args:
            encoder: identity of the encoder that is read, or fine-tuned.
        """
        found: dict[str, Any] = {"encoder": encoder, "folds": self.folds, "seed": self.seed}
        tuned: dict[str, Any] = {"iterations": self.iterations, "epochs": self.epochs or 1}
        if self.recipe != "short":
            tuned["recipe"] = self.recipe
        return {**found, "setfit": tuned} if self.setfit else found
