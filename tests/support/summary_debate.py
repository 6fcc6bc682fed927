"""Protocol that has a judge's summary classified, and a hand-made classifier for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from moot.actors.classifiers.card import Body, ClassifierCard, Head, HeldOutMetrics, MetricEstimate, Training
from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder
from moot.actors.record.referenced_files import CLASSIFIER_CARD
from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case
from moot.protocols.claims import classified_label
from moot.protocols.floor import Floor
from moot.protocols.messages import Event, Verdict

ENCODER = "hashed-ngrams-512-v1"
GOOD, BAD = "sources name the same year", "one passage gives another figure"


class SummaryDebate(DebateProtocol):
    """Protocol whose claim is used as the judge's summary; asks no agent."""

    roles = ("judge",)
    name = "summary"
    classifies = True

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Rule on one case."""
        found = await floor.classify(case.question)
        data: dict[str, Any] = {"verdict": None, "summary": case.question, "classifier": None}
        if found is None:
            floor.note(Event("ruling", "ruling", data))
            return Verdict(answer=None, how="ruled")
        data["classifier"] = {"p_hallucinated": found.p_hallucinated, "trained_on": found.trained_on}
        floor.note(Event("ruling", "ruling", data))
        return Verdict(answer=classified_label(found.p_hallucinated), how="ruled")


class Classifying(SummaryDebate):
    """Protocol that records the classifier's result in its payload, like `ceda`."""

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Rule on one case."""
        found = await floor.classify(case.question)
        if found is None:
            return Verdict(answer=None, how="ruled")
        said = {"p_hallucinated": found.p_hallucinated, "trained_on": found.trained_on}
        return Verdict(answer=classified_label(found.p_hallucinated), how="ruled", payload={"classifier": said})


def head() -> Head:
    """Classifier head that distinguishes `BAD` from `GOOD`."""
    good, bad = HashedNgramEncoder().rows([GOOD, BAD]).astype(np.float64)
    return Head(intercept=0.0, coefficients=tuple((3.0 * (bad - good)).tolist()), least_probability=0.1)


def card(trained_on: Sequence[str] = (), *, body: Body | None = None, **changes: Any) -> ClassifierCard:
    """A sealed card with `changes` to its fields."""
    half = MetricEstimate(value=0.5)
    figures = HeldOutMetrics(
        name="x", n=2, accuracy=half, f1_hallucinated=half, f1_supported=half, macro_f1=half, auroc=half
    )
    training = Training(
        digest="0" * 32, runs=("r",), tasks=(), protocols=(), simulated=True, n=2, hallucinated=1, cases=2, groups=2,
        left_out={}, folds=2, seed=0,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "kind": "logistic" if body is None else "setfit", "encoder": ENCODER, "body": body, "head": head(),
        "ridge": 1.0, "versions": {}, "training": training, "trained_on": tuple(sorted(trained_on)),
        "trained_on_groups": (),
        "held_out": (figures,),
    }  # fmt: skip
    return ClassifierCard(**{**fields, **changes}).with_digest()


def write_classifier_folder(folder: Path, made: ClassifierCard) -> Path:
    """Write the folder of a classifier."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CLASSIFIER_CARD).write_bytes(made.to_json())
    return folder
