"""From an encoder's name to an encoder, where local weights are found, and the hashed n-grams."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.actors.encoders.batching import BatchedEncoder
from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder
from moot.actors.encoders.resolve import EncoderSpec, identity, make_encoder
from moot.actors.encoders.sentence_model import find_folder, folder_digest
from moot.actors.models.retry import RetryPolicy
from moot.protocols.errors import ConfigError

RETRY = RetryPolicy()
ENCODER = HashedNgramEncoder()


def make_folder(folder: Path, weights: bytes = b"weights") -> Path:
    """What looks like a sentence-transformers model."""
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "modules.json").write_text("[]")
    (folder / "1_Pooling" / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


@pytest.mark.parametrize(
    ("name", "spec", "stored"),
    [
        ("hashed-ngrams", EncoderSpec("hashed-ngrams"), "hashed-ngrams-512-v1"),
        ("hashed-ngrams-512-v1", EncoderSpec("hashed-ngrams"), "hashed-ngrams-512-v1"),
        ("auto", EncoderSpec("hashed-ngrams"), "hashed-ngrams-512-v1"),
        ("http://h:1/v1/#a/b", EncoderSpec("url", model="a/b", base_url="http://h:1/v1"), "http://h:1/v1#a/b"),
        ("openai/text-x", EncoderSpec("openai", model="text-x"), "openai/text-x"),
    ],
)
def test_forms(name: str, spec: EncoderSpec, stored: str) -> None:
    assert EncoderSpec.parse(name) == spec
    assert identity(name) == identity(stored) == stored
    made = make_encoder(stored, RETRY)
    assert made.name == stored
    assert isinstance(made, HashedNgramEncoder if spec.kind == "hashed-ngrams" else BatchedEncoder)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hashed-ngram", "'hashed-ngrams'"),
        ("sentence-transformer/x", "'sentence-transformers/NAME'"),
        ("opanai/x", "'openai/NAME'"),
        ("", "unknown encoder ''"),
        ("openai/", "openai/NAME"),
        ("sentence-transformers/", "has no name"),
        ("sentence-transformers/nowhere-at-all", "models are not downloaded"),
        ("sentence-transformers/os", "models are not downloaded"),
        ("http://h:1/v1", "#NAME"),
        ("http://h:1/v1/embeddings#m", "/embeddings"),
        ("http://user:secret-word@h:1/v1#m", "may not hold a user"),
        ("http://h:1/v1?key=secret-word#m", "may not hold a user"),
        ("http://:1/v1#m", "URL"),
    ],
)
def test_what_is_no_encoder_is_refused_in_one_line(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        identity(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret-word" not in str(caught.value)


def test_a_key_goes_with_a_server_only() -> None:
    for name in ("hashed-ngrams", "sentence-transformers/x@0123456789ab"):
        with pytest.raises(ConfigError, match="`encoder_key_env`"):
            make_encoder(name, RETRY, api_key_env="SOME_KEY")
    make_encoder("http://h:1/v1#m", RETRY, api_key_env="SOME_KEY")


def test_a_local_model_is_known_by_its_path_and_its_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_folder(tmp_path / "some model")
    stored = identity(f"sentence-transformers/{folder}")
    assert stored == f"sentence-transformers/{folder}@{folder_digest(folder)}"
    assert identity(stored) == stored
    monkeypatch.chdir(tmp_path)
    assert identity("sentence-transformers/some model") == identity("sentence-transformers/./some model") == stored
    assert EncoderSpec.parse(stored).model == str(folder)
    (folder / "model.safetensors").write_bytes(b"other")
    assert identity(f"sentence-transformers/{folder}") != stored
    with pytest.raises(ConfigError, match="holds another model"):
        identity(stored)


def test_a_model_inside_an_installed_package_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "moot_test_weights"
    folder = make_folder(package / "model")
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_folder("moot-test-weights") == find_folder("moot_test_weights") == folder
    assert identity("sentence-transformers/moot-test-weights").startswith("sentence-transformers/moot-test-weights@")
    assert "moot_test_weights" not in sys.modules


@pytest.mark.parametrize(
    "modules",
    [
        [{"type": "sentence_transformers.models.Router", "path": "0_R"}],
        [{"type": "os.path", "path": ""}],
        [{"type": "sentence_transformers.models.Dense", "path": "../../x"}],
        {"a": 1},
    ],
)
def test_a_folder_that_names_code_of_its_own_is_refused(modules: object, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "model")
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ConfigError, match=r"modules\.json"):
        identity(f"sentence-transformers/{folder}")


def cosine(first: str, second: str) -> float:
    a, b = ENCODER.rows([first, second])
    return float(a @ b)


@given(st.text(max_size=60), st.sampled_from([1, 2, 7, 512]))
def test_rows_are_unit_vectors(text: str, dimension: int) -> None:
    (row,) = HashedNgramEncoder(dimension).rows([text])
    assert np.linalg.norm(row) == pytest.approx(1.0, abs=1e-6)


@given(st.lists(st.text(max_size=20), max_size=6), st.randoms(use_true_random=False))
def test_a_row_depends_on_its_text_only(texts: list[str], random: object) -> None:
    rows = ENCODER.rows(texts)
    np.testing.assert_array_equal(ENCODER.rows(texts[::-1]), rows[::-1])


def test_the_vectors_of_version_1_do_not_change() -> None:
    """Embeddings are stored under the encoder's name: another vector needs another version."""
    (row,) = ENCODER.rows(["penguins"])
    places = np.flatnonzero(row)
    assert places.tolist() == [92, 168, 169, 222, 239, 244, 258, 282, 417]
    word, triple = 0.710669, 0.248734  # 1 and 0.35 over the length of the row
    signs = np.array([-1, -1, 1, 1, 1, -1, -1, 1, -1])
    sizes = np.where(places == 417, word, triple)
    np.testing.assert_allclose(row[places], signs * sizes, atol=1e-6)
    assert np.flatnonzero(ENCODER.rows(["a b"])[0]).tolist() == [
        16,
        161,
        204,
        324,
        356,
    ]  # two words, two triples, one pair


def test_texts_with_shared_words_are_similar() -> None:
    near = cosine("can penguins fly", "penguins can fly")
    assert near > 0.6
    assert near > 5 * abs(cosine("can penguins fly", "the treaty was signed in Vienna"))
    assert cosine("Can PENGUINS fly?", "can penguins fly") == pytest.approx(1.0, abs=1e-6)
    assert cosine("penguin", "penguins") > cosine("penguin", "dolphins")
