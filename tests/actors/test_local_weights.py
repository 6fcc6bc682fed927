"""Folders whose files are wrong: each is refused in one line, and no code of theirs is run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_model import ask, tiny_folder

from moot.actors.models.interface import ModelError
from moot.actors.models.local import engine as local_engine
from moot.actors.models.local.batch import Batch
from moot.actors.models.local.model import LocalModel
from moot.actors.models.local.weights import load_weights
from moot.protocols.errors import ConfigError

pytestmark = pytest.mark.extras


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    return tiny_folder(tmp_path / "llama")


async def test_check_loads_no_weights(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "load_weights", None)
    await LocalModel(str(llama), seed=1).check()


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("config.json", "{", "config.json"),
        ("config.json", "{}", "config.json"),
        ("config.json", '{"model_type": "nobody-knows"}', "config.json"),
        ("config.json", '{"model_type": "t5"}', "encoder-decoder"),
        ("config.json", '{"model_type": "mamba"}', "keys and values|recurrent"),
        ("tokenizer.json", "{", "tokenizer"),
        ("model.safetensors", "", "damaged or cut off"),
    ],
)
async def test_a_broken_file_is_one_line(file: str, content: str, named: str, llama: Path) -> None:
    if content or file == "tokenizer.json":
        (llama / file).write_text(content)
    else:
        whole = (llama / file).read_bytes()
        (llama / file).write_bytes(whole[: len(whole) // 2])
    model = LocalModel(str(llama), seed=1)
    with pytest.raises(ConfigError, match=named) as caught:
        await model.check()
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        model.load()
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelError) as failed:
        await ask(model, "x")
    assert failed.value.kind == "request"
    await model.close()


def test_missing_weights_are_not_made_up(llama: Path) -> None:
    tensors = load_file(llama / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, llama / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match=r"layers\.1\.mlp\.up_proj"):
        load_weights(llama)


async def test_code_in_the_folder_is_not_run(llama: Path, tmp_path: Path) -> None:
    marker = tmp_path / "was-run"
    (llama / "evil.py").write_text(f"open({str(marker)!r}, 'w')\nclass C: pass\nclass M: pass\n")
    config = json.loads((llama / "config.json").read_text())
    auto_map = {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"}
    for kind in ("llama", "nobody-knows"):
        (llama / "config.json").write_text(json.dumps(config | {"model_type": kind, "auto_map": auto_map}))
        try:
            load_weights(llama)
        except ConfigError:
            assert kind != "llama"
    assert not marker.exists()


async def test_weights_that_are_no_numbers(llama: Path) -> None:
    tensors = load_file(llama / "model.safetensors")
    save_file(
        {name: torch.full_like(value, math.nan) for name, value in tensors.items()},
        llama / "model.safetensors",
        {"format": "pt"},
    )
    model = LocalModel(str(llama), seed=1)
    with pytest.raises(ModelError, match="not numbers") as caught:
        await ask(model, "x")
    assert caught.value.kind == "server"
    await model.close()


async def test_an_error_in_computing_fails_its_batch_and_no_other(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advance = Batch.advance
    left = [RuntimeError("out of\nmemory")]

    def failing(self: Batch, chosen: Any) -> None:
        if left:
            raise left.pop()
        advance(self, chosen)

    monkeypatch.setattr(Batch, "advance", failing)
    model = LocalModel(str(llama), seed=1)
    with pytest.raises(ModelError) as caught:
        await ask(model, "x")
    assert str(caught.value) == "server: RuntimeError: out of memory"
    assert (await ask(model, "x")).text
    await model.close()
