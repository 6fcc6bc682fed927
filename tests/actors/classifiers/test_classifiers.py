"""A saved classifier: what is not it is refused, every runtime reads it alike, and it knows its training cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from small_runs import run_debates
from summary_debate import BAD, ENCODER, GOOD, SummaryDebate, card, write_classifier_folder

from moot.actors.agent.roles import RoleBinding
from moot.actors.classifiers import card as card_module
from moot.actors.classifiers.card import BODY, Body, read_card
from moot.actors.classifiers.classifier import check_body, find_classifier, load_classifier
from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder
from moot.actors.encoders.sentence_model import folder_digest
from moot.actors.models.retry import RetryPolicy
from moot.actors.record.referenced_files import CLASSIFIER_CARD
from moot.actors.record.tables import read_table
from moot.protocols.claims import CLAIM_LABELS, SUPPORTED, text_hash
from moot.protocols.errors import ConfigError, EncoderFailed
from moot.protocols.tasks import Task

MODULES = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]


def refused(why: str, folder: Path, encoder: str = ENCODER) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        find_classifier(folder, encoder)
    assert "\n" not in str(caught.value)


def test_a_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = card(["ab" * 16])
    assert read_card(write_classifier_folder(tmp_path, made)) == made
    assert find_classifier(tmp_path, ENCODER) == (tmp_path, made)
    assert made.with_digest() == made
    refused("reads vectors of the encoder hashed-ngrams-512-v1, and the run has openai/x", tmp_path, "openai/x")
    (tmp_path / "more.py").write_text("")
    refused("more.py: a classifier's folder holds nothing else", tmp_path)


def written(**changes: Any) -> str:
    """A card's text with other fields."""
    return json.dumps(json.loads(card(["ab" * 16]).to_json()) | changes)


def head(**changes: Any) -> str:
    return written(head=json.loads(written())["head"] | changes)


CHANGED = "it was changed since it was written"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "expected JSON"),
        ("[" * 100_000, "expected JSON"),
        ("{}", "`kind`: is missing"),
        ("[1]", "`the file`"),
        ('{"kind": "pickle"}', "`kind`"),
        ("\x80\x04N.", "expected JSON"),
        (head(intercept=1.0), CHANGED),
        (head(coefficients=[*json.loads(written())["head"]["coefficients"][:-1], 0.5]), CHANGED),
        (head(least_probability=0.01), CHANGED),
        (written(trained_on=["cd" * 16]), CHANGED),
        (written(training=json.loads(written())["training"] | {"simulated": False}), CHANGED),
        (written(encoder="openai/x"), CHANGED),
        (written(format=2), "format"),
        (written(surprise=1), "surprise"),
        (written(kind="setfit"), "a body is for the kind setfit only"),
        (written(trained_on=["../etc"]), "trained_on.0"),
        (head(intercept=float("nan")), "JSON"),
        (head(coefficients=[]), "head.coefficients"),
        (head(coefficients=[0] * 20_000), "head.coefficients"),
        (head(least_probability=0), "head.least_probability"),
    ],
)
def test_what_is_no_card_or_a_changed_one_is_refused(tmp_path: Path, content: str, why: str) -> None:
    refused("no classifier there", tmp_path)
    (tmp_path / CLASSIFIER_CARD).write_text(content, encoding="latin-1")
    refused(why, tmp_path)


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_module, "MOST_CARD_BYTES", 100)
    refused("larger than", write_classifier_folder(tmp_path, card()))


def test_probabilities_stay_within_bounds_and_vectors_of_another_size_fail_the_case(tmp_path: Path) -> None:
    write_classifier_folder(tmp_path, card([text_hash("The claim.")]))
    found = load_classifier(tmp_path, read_card(tmp_path).digest, ENCODER, RetryPolicy())
    good, bad = HashedNgramEncoder().rows([GOOD, BAD])
    assert found.p_hallucinated(good) == pytest.approx(0.1)
    assert found.p_hallucinated(bad) == pytest.approx(0.9)
    assert found.encoder is None
    assert [found.trained_on(each) for each in (" the CLAIM", "Another claim.")] == [True, False]
    with pytest.raises(EncoderFailed, match="vectors of 512"):
        found.p_hallucinated(np.ones(3, np.float32))
    with pytest.raises(ConfigError, match="holds another classifier"):
        load_classifier(tmp_path, "0" * 32, ENCODER, RetryPolicy())


def body_folder(folder: Path, modules: object = MODULES) -> str:
    folder.mkdir(parents=True)
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder_digest(folder)


def test_a_body_is_itself_and_nothing_but_data(tmp_path: Path) -> None:
    digest = body_folder(tmp_path / BODY)
    write_classifier_folder(tmp_path, card(body=Body(digest=digest, base="b", iterations=None, epochs=1)))
    found = find_classifier(tmp_path, "any encoder of the run")
    assert found.card.kind == "setfit"
    opened = load_classifier(tmp_path, found.card.digest, "any", RetryPolicy())
    assert opened.encoder is not None
    assert opened.encoder.name == f"setfit@{digest}"
    (tmp_path / BODY / "model.safetensors").write_bytes(b"weightz")
    refused("holds another model", tmp_path)


@pytest.mark.parametrize("name", ["model.pkl", "pytorch_model.bin", "custom.py", "head.joblib", ".hidden.pt"])
def test_pickles_code_and_links_in_a_body_are_refused(tmp_path: Path, name: str) -> None:
    digest = body_folder(tmp_path / BODY)
    write_classifier_folder(tmp_path, card(body=Body(digest=digest, base="b", iterations=1, epochs=1)))
    (tmp_path / BODY / name).write_bytes(b"cos\nsystem\n.")
    refused("safetensors", tmp_path)
    (tmp_path / BODY / name).unlink()
    (tmp_path / BODY / "more.json").symlink_to("/etc/hostname")
    refused("safetensors", tmp_path)


@pytest.mark.parametrize("name", [".more.json", ".cache/config.json", "__more/model.safetensors", "1_Pooling/.x.txt"])
def test_what_the_digest_does_not_cover_is_refused_in_a_body(tmp_path: Path, name: str) -> None:
    digest = body_folder(tmp_path / BODY)
    (tmp_path / BODY / name).parent.mkdir(exist_ok=True)
    (tmp_path / BODY / name).write_bytes(b"{}")
    assert folder_digest(tmp_path / BODY) == digest
    with pytest.raises(ConfigError, match="hidden"):
        check_body(tmp_path / BODY, digest)


@pytest.mark.parametrize(
    ("modules", "why"),
    [
        ([{"type": "custom.Module"}], "sentence-transformers"),
        ([{}], "sentence-transformers"),
        ({}, "JSON list"),
        ([{**MODULES[0], "path": "/elsewhere"}], "`path`"),
        ([{**MODULES[0], "path": "0_A/../../elsewhere"}], "`path`"),
        ([{**MODULES[0], "path": 1}], "`path`"),
    ],
)
def test_modules_of_ones_own_are_not_loaded(tmp_path: Path, modules: object, why: str) -> None:
    digest = body_folder(tmp_path / BODY, modules)
    with pytest.raises(ConfigError, match=why):
        check_body(tmp_path / BODY, digest)
    with pytest.raises(ConfigError, match="no sentence encoder"):
        check_body(tmp_path, digest)


def claims() -> list[dict[str, Any]]:
    return [
        {"id": f"c-{number}", "question": text, "labels": list(CLAIM_LABELS), "gold": SUPPORTED}
        for number, text in enumerate([GOOD, BAD, f"{GOOD} too", f"{BAD} too"])
    ]


async def run_classified(kind: str, folder: Path, classifier: Path | None) -> Path:
    changes: dict[str, Any] = {}
    if classifier is not None:
        changes = {"classifier": str(classifier), "classifier_digest": read_card(classifier).digest}
    cases = Task.from_cases(claims()).cases()
    roles = {"judge": [RoleBinding()]}
    return (await run_debates(kind, folder, SummaryDebate(), cases, roles, **changes)).folder


def rulings(folder: Path) -> dict[str, Any]:
    rows = read_table(folder, "events", ["data"]).to_pylist()
    return {row["case_id"]: msgspec.json.decode(row["data"]) for row in rows if row["kind"] == "ruling"}


async def test_a_run_has_summaries_classified_and_training_cases_flagged(tmp_path: Path) -> None:
    (trained, *_) = [labelled.case for labelled in Task.from_cases(claims()).cases()]
    classifier = write_classifier_folder(tmp_path / "clf", card([text_hash(f"{trained.question} .".upper())]))
    found = rulings(await run_classified("inline", tmp_path / "run", classifier))
    assert [found[f"c-{n}"]["classifier"]["trained_on"] for n in range(4)] == [True, False, False, False]
    assert [found[f"c-{n}"]["classifier"]["p_hallucinated"] > 0.5 for n in range(4)] == [False, True, False, True]
    none = rulings(await run_classified("inline", tmp_path / "none", None))
    assert [none[f"c-{n}"]["classifier"] for n in range(4)] == [None] * 4
