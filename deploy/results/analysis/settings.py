"""Settings of an analysis."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from moot.metrics.signal_divergences import HIGH_QUALITY, LOW_QUALITY, TAIL


class AnalysisSettings(BaseModel):
    """Settings of an analysis.

    Attributes:
        resamples: number of cluster-bootstrap resamples for every interval of the sweep.
        permutations: number of cluster permutations for every p-value.
        seed: random seed of resamples, permutations and folds.
        folds: number of folds of every cross-validation, grouped by case.
        least_n: fewest replies with a feature for it to be ranked.
        least_class: fewest replies of the rarer class for a binary target to have intervals and be ranked.
        too_few: fewest replies of a stratum that is analysed; a smaller one is listed as too small.
        quantile: tail share of confidence within (domain, role); high and low confidence are the two tails.
        low_quality: largest Q of a weak reply; a flagged reply is weak, too.
        high_quality: smallest Q of a well-reasoned reply, which must not be flagged.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    resamples: int = Field(default=200, ge=50, le=10_000)
    permutations: int = Field(default=1000, ge=100, le=100_000)
    seed: int = 0
    folds: int = Field(default=5, ge=2, le=20)
    least_n: int = Field(default=30, ge=3)
    least_class: int = Field(default=5, ge=1)
    too_few: int = Field(default=10, ge=3)
    quantile: float = Field(default=TAIL, gt=0.0, lt=0.5)
    low_quality: float = LOW_QUALITY
    high_quality: float = HIGH_QUALITY

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.low_quality >= self.high_quality:
            raise ValueError(f"low_quality, {self.low_quality:g}, is not below high_quality, {self.high_quality:g}")
        return self
