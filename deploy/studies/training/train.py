"""Training of a classifier: from runs to a folder for later runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from moot.actors.classifiers.card import BODY, Body, ClassifierCard, Recipe
from moot.actors.classifiers.classifier import body_name, check_body
from moot.actors.encoders.interface import Rows
from moot.actors.encoders.resolve import EncoderSpec, identity, make_encoder
from moot.actors.encoders.sentence_model import find_folder, folder_digest
from moot.actors.models.retry import RetryPolicy
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.store.mirror import record_path
from moot.deploy.runs.validation import validate_model
from moot.deploy.studies.training.card import find_classifier, make_card, write_classifier
from moot.deploy.studies.training.contrastive import FineTuningSettings, check_setfit, save
from moot.deploy.studies.training.examples import TrainingExamples, read_examples
from moot.deploy.studies.training.fit import TrainingData, train_logistic, train_setfit
from moot.metrics.logistic_regression import grouped_folds
from moot.protocols.claims import HALLUCINATED, SUPPORTED
from moot.protocols.errors import ConfigError
from moot.protocols.verdict_words import mask_verdict_words

LEAST_GROUPS = 20
"""Minimum number of groups of cases for a training."""

_LEAST_OF_A_LABEL = 4
_MOST_SUMMARIES, _MOST_FINE_TUNED = 100_000, 5_000


class TrainingSettings(BaseModel):
    """Training settings of a classifier; see `train_classifier`."""

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
            raise ValueError("--iterations and --epochs need --setfit")
        if self.recipe == "published" and (self.setfit is None or (self.iterations, self.epochs) != (None, None)):
            raise ValueError("--recipe published needs --setfit, and sets --iterations and --epochs itself")
        return self

    def of_the_result(self, encoder: str) -> dict[str, Any]:
        """The settings that determine the classifier, besides the summaries and the encoder."""
        found: dict[str, Any] = {"encoder": encoder, "folds": self.folds, "seed": self.seed}
        tuned: dict[str, Any] = {"iterations": self.iterations, "epochs": self.epochs or 1}
        if self.recipe != "short":
            tuned["recipe"] = self.recipe
        return {**found, "setfit": tuned} if self.setfit else found


class TrainedClassifier(NamedTuple):
    """A classifier's card, and whether it already existed, with the same summaries and settings."""

    card: ClassifierCard
    already_trained: bool


def train_classifier(
    runs: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    setfit: str | None = None,
    encoder: str | None = None,
    folds: int = 5,
    seed: int = 0,
    iterations: int | None = None,
    epochs: int | None = None,
    recipe: Recipe = "short",
) -> ClassifierCard:
    """Train a classifier on the judges' summaries of finished runs, and measure it on held-out folds.

    Args:
        runs: folders of runs whose cases have gold labels.
        out: the classifier's folder. If it already contains the same classifier, that one stays.
        setfit: a sentence encoder to fine-tune, `sentence-transformers/NAME`; None for a frozen encoder.
        encoder: the encoder without `setfit`; None for that of the runs.
        folds, seed: cross-validation folds, and the random seed.
        iterations: pairs of one label, and of two, per summary, with `setfit`; None for `contrastive.PAIRS` in all.
        epochs: training epochs, with `setfit`; None for one.
        recipe: how `setfit` fine-tunes: `short`, or `published`, SetFit's own defaults, which take every pair.

    Returns:
        The card, as in `out/classifier.json`.

    Raises:
        ConfigError: one line about what is wrong with the runs, the settings or the folder.
        CapabilityMissing: packages are missing; names the extra.
    """
    given = {"setfit": setfit, "encoder": encoder, "folds": folds, "seed": seed}
    settings = validate_model(TrainingSettings, {**given, "iterations": iterations, "epochs": epochs, "recipe": recipe})
    return train_with_progress([runs] if isinstance(runs, str | Path) else list(runs), out, settings).card


def train_with_progress(
    runs: Sequence[str | Path],
    out: str | Path,
    settings: TrainingSettings,
    say: Callable[[str], None] = lambda line: None,
) -> TrainedClassifier:
    """As `train_classifier`, with progress lines to `say`."""
    runs = [record_path(run) for run in runs]
    examples = read_examples(runs)
    _check(examples, settings)
    encoder = base_encoder(settings.setfit) if settings.setfit else choose_encoder(examples, settings.encoder)
    digest = examples.digest(settings.of_the_result(encoder.name))
    if (there := find_classifier(out, digest)) is not None:
        return TrainedClassifier(there, True)
    texts = [row.text for row in examples.rows]
    masked = [mask_verdict_words(text) for text in texts]
    fold = grouped_folds(examples.groups, settings.folds, settings.seed, examples.outcome)
    material = TrainingData(examples.outcome, examples.groups, fold, settings.folds, settings.seed)
    if settings.setfit is None:
        say(f"embedding {len(texts):,} summaries ...")
        vectors = embed_texts(encoder, [*texts, *masked])
        say(f"learning, and measuring on {settings.folds} held-out folds ...")
        learned = train_logistic(vectors[: len(texts)], vectors[len(texts) :], material)
        card = make_card(
            learned, examples, material, runs=runs, encoder=encoder.name, body=None, training_digest=digest
        )
        return TrainedClassifier(write_classifier(out, lambda draft: card), False)
    check_setfit()
    base = find_folder(EncoderSpec.parse(encoder.name).model)
    tuning = FineTuningSettings(base, settings.iterations, settings.epochs or 1, settings.recipe)
    learned, tuned = train_setfit(texts, masked, material, tuning, say)

    def with_body(draft: Path) -> ClassifierCard:
        save(tuned, draft / BODY)
        made = folder_digest(draft / BODY)
        check_body(draft / BODY, made)
        body = Body(
            digest=made,
            base=encoder.name,
            iterations=tuning.iterations,
            epochs=tuning.epochs,
            recipe=tuning.recipe,
        )
        return make_card(
            learned, examples, material, runs=runs, encoder=body_name(made), body=body, training_digest=digest
        )

    return TrainedClassifier(write_classifier(out, with_body), False)


def _check(examples: TrainingExamples, settings: TrainingSettings) -> None:
    """Refuse too few groups, or too few of them with one of the labels, and too many summaries."""
    groups = set(examples.groups.tolist())
    if len(groups) < LEAST_GROUPS:
        left = "".join(f"; left out: {n} {why}" for why, n in examples.left_out.items())
        raise ConfigError(
            f"{len(groups)} cases (or groups of them) with a gold label and a summary are too few to learn from: "
            f"expected at least {LEAST_GROUPS}{left}"
        )
    least = max(settings.folds, _LEAST_OF_A_LABEL)
    for label, is_it in ((SUPPORTED, False), (HALLUCINATED, True)):
        found = len({row.group for row in examples.rows if row.hallucinated is is_it})
        if found < least:
            raise ConfigError(f"{found} {label} cases (or groups of them): expected at least {least} of each label")
    most = _MOST_FINE_TUNED if settings.setfit else _MOST_SUMMARIES
    if len(examples.rows) > most:
        raise ConfigError(
            f"{len(examples.rows):,} summaries are more than the {most:,} that this can take: name fewer runs"
        )


class NamedEncoder(NamedTuple):
    """An encoder's identity, and the environment variable with its key; None for the default of its form."""

    name: str
    key_env: str | None = None


def choose_encoder(examples: TrainingExamples, given: str | None) -> NamedEncoder:
    """The classifier's encoder: the given one, else that of the runs.

    Raises:
        ConfigError: the name is malformed, there is no such model, or the runs have several encoders or none.
    """
    of_runs = sorted({run.encoder for run in examples.runs if run.encoder})
    if given is None and len(of_runs) != 1:
        had = f"have several encoders ({', '.join(of_runs)})" if of_runs else "do not say which encoder they had"
        raise ConfigError(f"the runs {had}: name one with --encoder")
    name = identity(given or of_runs[0])
    keys = {str(key) for run in examples.runs if run.encoder == name and (key := _key_env(run.path))}
    return NamedEncoder(name, min(keys, default=None))


def _key_env(folder: object) -> str | None:
    found = read_run_yaml(RunFolder(str(folder))).get("encoder_key_env")
    return found if isinstance(found, str) else None


def base_encoder(name: str) -> NamedEncoder:
    """The sentence encoder to fine-tune.

    Raises:
        ConfigError: there is no such encoder on this machine.
    """
    if EncoderSpec.parse(name).kind != "sentence-transformers":
        raise ConfigError(f"--setfit {name}: expected sentence-transformers/NAME, a model whose weights can be trained")
    return NamedEncoder(identity(name))


def embed_texts(encoder: NamedEncoder, texts: Sequence[str]) -> Rows:
    """One unit vector per text, `(n, d)`; also from a thread whose event loop is running.

    Raises:
        UserError: the encoder cannot be used.
        EncoderFailed: no vector for one of the texts.
    """
    found: Future[Rows] = Future()

    def fetch() -> None:
        try:
            found.set_result(asyncio.run(_encoded(encoder, texts)))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=fetch, name="embeddings", daemon=True).start()
    return found.result()


async def _encoded(named: NamedEncoder, texts: Sequence[str]) -> Rows:
    encoder = make_encoder(named.name, RetryPolicy(), api_key_env=named.key_env)
    try:
        await encoder.check()
        return await encoder.encode(texts)
    finally:
        await encoder.close()
