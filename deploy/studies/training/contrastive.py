"""Contrastive fine-tuning of a sentence encoder with SetFit, on pairs of labelled texts: offline, without output."""

from __future__ import annotations

import importlib.util
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moot.actors.classifiers.card import Recipe
from moot.protocols.errors import CapabilityMissing

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PACKAGES = ("setfit", "sentence_transformers", "torch")
PAIRS_A_STEP = 16
PAIRS = 160
"""Default number of pairs per epoch: one or two minutes on two cores for 300 summaries and five folds."""


_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_EVALUATE_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True)
class FineTuningSettings:
    """Settings of a fine-tuning.

    Attributes:
        base: folder of the initial sentence-transformers model; nothing is downloaded.
        iterations: pairs of either kind per text, for the short recipe; None for `PAIRS` in total.
        epochs: number of epochs.
        recipe: `short`, or `published`: the defaults of SetFit.
    """

    base: Path
    iterations: int | None = None
    epochs: int = 1
    recipe: Recipe = "short"


def check_setfit() -> None:
    """Raise `CapabilityMissing`, which names the extra, if packages are missing."""
    if any(importlib.util.find_spec(name) is None for name in PACKAGES):
        raise CapabilityMissing("--setfit needs packages that are not installed: pip install 'moot[setfit]'")


def training_steps(summaries: int, iterations: int | None, epochs: int) -> int:
    """Optimiser steps of a fine-tuning with the short recipe; see `FineTuningSettings`.

    >>> training_steps(300, None, 1), training_steps(300, 2, 1)
    (10, 75)
    """
    pairs = PAIRS if iterations is None else 2 * summaries * iterations
    return -(-pairs * epochs // PAIRS_A_STEP)


def training_pairs(labels: Sequence[int], tuning: FineTuningSettings) -> int:
    """Number of training pairs.

    The published recipe uses every pair, including a text with itself, and oversamples the rarer kind.

    >>> training_pairs([1, 1, 0, 0], FineTuningSettings(Path("any"), recipe="published"))
    12
    """
    if tuning.recipe == "short":
        return training_steps(len(labels), tuning.iterations, tuning.epochs) * PAIRS_A_STEP
    ones = sum(labels)
    zeros = len(labels) - ones
    positive = (ones * (ones + 1) + zeros * (zeros + 1)) // 2
    return 2 * max(positive, ones * zeros)


def fine_tune(
    texts: Sequence[str], labels: Sequence[int], tuning: FineTuningSettings, *, seed: int
) -> SentenceTransformer:
    """Fine-tune an encoder so that texts with the same label are close to each other.

    The target is a cosine similarity of 1 within a label, and 0 between labels. The short recipe freezes the token
    embeddings, which halves the work, and has no learning-rate warm-up, which would use up some of its few steps. The
    published one uses SetFit's settings. The same texts, order and seed give the same weights on the same machine, as
    far as torch guarantees it. Files are written only to a temporary folder.

    Args:
        texts, labels: `(n,)` each.
        tuning: settings of the fine-tuning.
        seed: seed of dropout and of the order of texts.
    """
    order = random.Random(seed).sample(range(len(texts)), len(texts))
    with _isolated(), tempfile.TemporaryDirectory(prefix="moot-setfit-") as scratch:
        from datasets import Dataset
        from setfit import SetFitModel, Trainer, TrainingArguments
        from torch.nn import Embedding
        from transformers import ProgressCallback

        body = load(tuning.base)
        options: dict[str, Any] = {}  # the published recipe uses the defaults
        if tuning.recipe == "short":
            for module in body.modules():
                if isinstance(module, Embedding):
                    module.weight.requires_grad_(False)
            options = {
                "batch_size": PAIRS_A_STEP,
                "num_iterations": tuning.iterations,
                "num_epochs": tuning.epochs,
                "max_steps": training_steps(len(texts), tuning.iterations, tuning.epochs),
                "warmup_proportion": 0.0,
            }
        rows = {"text": [texts[i] for i in order], "label": [labels[i] for i in order]}
        arguments = TrainingArguments(
            output_dir=scratch,
            **options,
            seed=seed,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            show_progress_bar=False,
        )
        model = SetFitModel(model_body=body, model_head=None)
        trainer = Trainer(model=model, args=arguments, train_dataset=Dataset.from_dict(rows))
        trainer.st_trainer.pop_callback(ProgressCallback)
        trainer.st_trainer.args.dataloader_pin_memory = False
        trainer.train_embeddings(rows["text"], rows["label"], args=arguments)
    body.eval()
    return body


def load(folder: Path) -> SentenceTransformer:
    """Load a sentence encoder from a folder."""
    with _isolated():
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(folder), local_files_only=True)


def save(body: SentenceTransformer, folder: Path) -> None:
    """Write an encoder: weights as safetensors, settings as JSON, without a model card."""
    with _isolated():
        body.save_pretrained(str(folder), create_model_card=False, safe_serialization=True)


@contextmanager
def _isolated() -> Iterator[None]:
    """Context in which the libraries are offline and silent; restores environment, random states and verbosity."""
    environment = dict(os.environ)
    with ExitStack() as after:
        after.callback(os.environ.update, environment)
        after.callback(lambda: [os.environ.pop(name) for name in os.environ.keys() - environment.keys()])
        os.environ.update(_OFFLINE)
        import datasets
        import torch
        from setfit import logging as setfit_logging
        from transformers.utils import logging

        after.callback(random.setstate, random.getstate())
        after.callback(np.random.set_state, np.random.get_state())
        after.callback(torch.set_rng_state, torch.get_rng_state())
        after.callback(setfit_logging.set_verbosity, setfit_logging.get_verbosity())
        if logging.is_progress_bar_enabled():
            after.callback(logging.enable_progress_bar)
        if not datasets.are_progress_bars_disabled():
            after.callback(datasets.enable_progress_bars)
        setfit_logging.set_verbosity_error()
        logging.disable_progress_bar()
        datasets.disable_progress_bars()
        yield
