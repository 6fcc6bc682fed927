"""What can be set on an analysis."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class AnalysisSettings(BaseModel):
    """How the analysis counts; the defaults are the documented ones.

    Attributes:
        resamples: cluster-bootstrap resamples behind every interval of the sweep.
        permutations: cluster permutations behind every p-value.
        seed: of both, and of the folds.
        folds: of every cross-validation, by case.
        least_n: a feature that fewer replies have is left out of rankings.
        too_few: a stratum with fewer replies is shown as too small and not analysed.
        quantile: confidence is high above the upper and low below the lower one of these within (domain, role).
        low_quality: a reply with at most this Q, or a flagged one, is weak.
        high_quality: a reply with at least this Q, and not flagged, is well reasoned.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    resamples: int = Field(default=200, ge=50, le=10_000)
    permutations: int = Field(default=1000, ge=100, le=100_000)
    seed: int = 0
    folds: int = Field(default=5, ge=2, le=20)
    least_n: int = Field(default=30, ge=3)
    too_few: int = Field(default=10, ge=3)
    quantile: float = Field(default=0.25, gt=0.0, lt=0.5)
    low_quality: float = 5.0
    high_quality: float = 8.0
