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
    """Settings of a training; see `train_classifier`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    setfit: str | None = None
    encoder: str | None = None
    folds: Annotated[int, Field(ge=2, le=20)] = 5
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    iterations: Annotated[int, Field(ge=1, le=50)] | None = None
    epochs: Annotated[int, Field(ge=1, le=20)] | None = None
    recipe: Recipe = "short"

    @model_validator(mode="after")
    def _compatible(self) -> TrainingSettings:
        if self.setfit is not None and self.encoder is not None:
            raise ValueError("--encoder: with --setfit the classifier contains its own encoder; leave it out")
        if self.setfit is None and (self.iterations, self.epochs) != (None, None):
            raise ValueError("--iterations and --epochs need --setfit")
        if self.recipe == "published" and (self.setfit is None or (self.iterations, self.epochs) != (None, None)):
            raise ValueError("--recipe published needs --setfit, and sets --iterations and --epochs itself")
        return self

    def decisive(self, encoder: str) -> dict[str, Any]:
        """Settings that determine the classifier, besides the summaries and the encoder."""
        common: dict[str, Any] = {"encoder": encoder, "folds": self.folds, "seed": self.seed}
        tuned: dict[str, Any] = {"iterations": self.iterations, "epochs": self.epochs or 1}
        if self.recipe != "short":
            tuned["recipe"] = self.recipe
        return {**common, "setfit": tuned} if self.setfit else common


class TrainedClassifier(NamedTuple):
    """Card of a classifier, and whether it already existed, with the same summaries and settings."""

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
    """Train a classifier on the judges' summaries of finished runs, and evaluate it on held-out folds.

    Args:
        runs: folders of runs whose cases have gold labels.
        out: folder of the classifier. If it already contains the same classifier, nothing is done.
        setfit: sentence encoder to fine-tune, `sentence-transformers/NAME`; None for a frozen encoder.
        encoder: encoder without `setfit`; None for that of the runs.
        folds, seed: number of cross-validation folds, and random seed.
        iterations: with `setfit`, pairs of equal and of different label per summary; None for 160 pairs in total.
        epochs: with `setfit`, number of training epochs; None for one.
        recipe: with `setfit`, how to fine-tune: `short`, or `published`, the defaults of SetFit, which use every pair.

    Returns:
        The card, as in `out/classifier.json`.

    Raises:
        ConfigError: the runs, the settings or the folder are invalid; one line.
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
    """As `train_classifier`, with lines of progress to `say`."""
    runs = [record_path(run) for run in runs]
    examples = read_examples(runs)
    _check(examples, settings)
    encoder = base_encoder(settings.setfit) if settings.setfit else choose_encoder(examples, settings.encoder)
    digest = examples.digest(settings.decisive(encoder.name))
    if (existing := find_classifier(out, digest)) is not None:
        return TrainedClassifier(existing, True)
    texts = [row.text for row in examples.rows]
    masked = [mask_verdict_words(text) for text in texts]
    fold = grouped_folds(examples.groups, settings.folds, settings.seed, examples.outcome)
    data = TrainingData(examples.outcome, examples.groups, fold, settings.folds, settings.seed)
    if settings.setfit is None:
        say(f"embedding {len(texts):,} summaries ...")
        vectors = embed_texts(encoder, [*texts, *masked])
        say(f"training, and evaluating on {settings.folds} held-out folds ...")
        fitted = train_logistic(vectors[: len(texts)], vectors[len(texts) :], data)
        card = make_card(fitted, examples, data, runs=runs, encoder=encoder.name, body=None, training_digest=digest)
        return TrainedClassifier(write_classifier(out, lambda draft: card), False)
    check_setfit()
    base = find_folder(EncoderSpec.parse(encoder.name).model)
    tuning = FineTuningSettings(base, settings.iterations, settings.epochs or 1, settings.recipe)
    fitted, tuned = train_setfit(texts, masked, data, tuning, say)

    def with_body(draft: Path) -> ClassifierCard:
        save(tuned, draft / BODY)
        body_digest = folder_digest(draft / BODY)
        check_body(draft / BODY, body_digest)
        body = Body(
            digest=body_digest,
            base=encoder.name,
            iterations=tuning.iterations,
            epochs=tuning.epochs,
            recipe=tuning.recipe,
        )
        return make_card(
            fitted, examples, data, runs=runs, encoder=body_name(body_digest), body=body, training_digest=digest
        )

    return TrainedClassifier(write_classifier(out, with_body), False)


def _check(examples: TrainingExamples, settings: TrainingSettings) -> None:
    """Refuse too few groups in total or with one label, and too many summaries."""
    groups = set(examples.groups.tolist())
    if len(groups) < LEAST_GROUPS:
        left_out = "".join(f"; left out: {n} {why}" for why, n in examples.left_out.items())
        raise ConfigError(
            f"{len(groups)} cases (or groups of them) with a gold label and a summary are too few to train on: "
            f"expected at least {LEAST_GROUPS}{left_out}"
        )
    least = max(settings.folds, _LEAST_OF_A_LABEL)
    for label, is_it in ((SUPPORTED, False), (HALLUCINATED, True)):
        groups_with_label = len({row.group for row in examples.rows if row.hallucinated is is_it})
        if groups_with_label < least:
            raise ConfigError(
                f"{groups_with_label} {label} cases (or groups of them): expected at least {least} of each label"
            )
    most = _MOST_FINE_TUNED if settings.setfit else _MOST_SUMMARIES
    if len(examples.rows) > most:
        raise ConfigError(f"{len(examples.rows):,} summaries are more than the maximum of {most:,}: name fewer runs")


class NamedEncoder(NamedTuple):
    """Identity of an encoder, and the environment variable with its key; None for the default of its kind."""

    name: str
    key_env: str | None = None


def choose_encoder(examples: TrainingExamples, given: str | None) -> NamedEncoder:
    """Encoder of the classifier: the given one, else that of the runs.

    Raises:
        ConfigError: the name is malformed, there is no such model, or the runs have several encoders or none.
    """
    of_runs = sorted({run.encoder for run in examples.runs if run.encoder})
    if given is None and len(of_runs) != 1:
        had = f"have several encoders ({', '.join(of_runs)})" if of_runs else "do not name their encoder"
        raise ConfigError(f"the runs {had}: name one with --encoder")
    name = identity(given or of_runs[0])
    keys = {str(key) for run in examples.runs if run.encoder == name and (key := _key_env(run.path))}
    return NamedEncoder(name, min(keys, default=None))


def _key_env(folder: object) -> str | None:
    variable = read_run_yaml(RunFolder(str(folder))).get("encoder_key_env")
    return variable if isinstance(variable, str) else None


def base_encoder(name: str) -> NamedEncoder:
    """Sentence encoder to fine-tune.

    Raises:
        ConfigError: there is no such encoder on this machine.
    """
    if EncoderSpec.parse(name).kind != "sentence-transformers":
        raise ConfigError(f"--setfit {name}: expected sentence-transformers/NAME, a model whose weights can be trained")
    return NamedEncoder(identity(name))


def embed_texts(encoder: NamedEncoder, texts: Sequence[str]) -> Rows:
    """Unit vectors of texts, `(n, d)`; also from a thread whose event loop is running.

    Raises:
        UserError: the encoder cannot be used.
        EncoderFailed: a text has no vector.
    """
    vectors: Future[Rows] = Future()

    def fetch() -> None:
        try:
            vectors.set_result(asyncio.run(_encoded(encoder, texts)))
        except BaseException as error:
            vectors.set_exception(error)

    threading.Thread(target=fetch, name="embeddings", daemon=True).start()
    return vectors.result()


async def _encoded(named: NamedEncoder, texts: Sequence[str]) -> Rows:
    encoder = make_encoder(named.name, RetryPolicy(), api_key_env=named.key_env)
    try:
        await encoder.check()
        return await encoder.encode(texts)
    finally:
        await encoder.close()
