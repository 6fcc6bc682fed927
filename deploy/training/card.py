"""The card of a classifier that was just trained."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from moot.actors.classifiers.card import Body, Card, Figures, Training
from moot.actors.record.store.mirror import name_of
from moot.deploy.training.examples import Examples
from moot.deploy.training.figures import HeldOutCases
from moot.deploy.training.learned import Learned, Material

OWN = "the classifier"
MASKED = "the same without verdict words"
MASKED_HEAD = "head alone learnt without verdict words"
JUDGES = "the judges' bare verdict"
ALWAYS = "always supported"
"""Names of the ways to decide, as the table lists them; with a body of its own, only the head learns anew."""

_PACKAGES = ("moot", "numpy", "scipy")
_MORE = ("setfit", "sentence-transformers", "transformers", "torch")


def make_card(
    learned: Learned,
    examples: Examples,
    material: Material,
    *,
    runs: Sequence[str | Path],
    encoder: str,
    body: Body | None,
    training_digest: str,
) -> Card:
    """The card, sealed.

    Args:
        learned: the head and its held-out probabilities.
        examples: what it was learnt from.
        material: their labels, groups and folds.
        runs: their folders, as they were named.
        encoder: identity of the encoder that is read; with a body, its name.
        body: the fine-tuned encoder; None for the kind `logistic`.
        training_digest: see `Training.digest`.
    """
    training = Training(
        digest=training_digest,
        runs=tuple(name_of(run) for run in runs),
        tasks=_named(run.task for run in examples.runs),
        protocols=_named(run.protocol for run in examples.runs),
        simulated=examples.simulated,
        n=len(examples.rows),
        hallucinated=int(material.outcome.sum()),
        cases=len({row.content_hash for row in examples.rows}),
        groups=len(np.unique(material.groups)),
        left_out=examples.left_out,
        folds=material.folds,
        seed=material.seed,
    )
    return Card(
        kind="logistic" if body is None else "setfit",
        encoder=encoder,
        body=body,
        head=learned.head,
        ridge=learned.ridge,
        versions=_versions(_PACKAGES if body is None else _PACKAGES + _MORE),
        training=training,
        trained_on=tuple(sorted({row.claim for row in examples.rows})),
        trained_on_groups=tuple(sorted({row.source for row in examples.rows if row.source})),
        held_out=_held_out(learned, examples, material, MASKED if body is None else MASKED_HEAD),
    ).sealed()


def _held_out(learned: Learned, examples: Examples, material: Material, masked: str) -> tuple[Figures, ...]:
    cases = HeldOutCases(material.outcome, material.groups, material.fold, material.seed)
    judged = [np.nan if row.judged_hallucinated is None else float(row.judged_hallucinated) for row in examples.rows]
    return (
        cases.of_probabilities(OWN, learned.p),
        cases.of_probabilities(masked, learned.p_masked),
        cases.of_answers(JUDGES, np.array(judged)),
        cases.of_answers(ALWAYS, np.zeros(len(judged))),
    )


def _named(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
