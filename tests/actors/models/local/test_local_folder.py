"""Folders that `local/PATH` refuses, and the errors; needs neither torch nor transformers."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from moot.actors.agent.backend_factory import make_model
from moot.actors.agent.roles import RoleBinding, Roles
from moot.actors.models.local import folder as local_folder
from moot.actors.models.local.folder import model_folder
from moot.actors.models.resolve import ModelBinding, absolute_model
from moot.actors.remote.runtime import gpu_share, weight_owners
from moot.protocols.errors import ConfigError


def _folder(path: Path, *names: str) -> Path:
    path.mkdir()
    for name in names:
        (path / name).write_text("{}")
    return path


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "no config.json"),
        (("model.safetensors",), "no config.json"),
        (("config.json",), "no weights"),
        (("config.json", "pytorch_model.bin"), "pytorch_model.bin"),
        (("config.json", "consolidated.00.pth"), "consolidated.00.pth"),
        (("config.json", "model.gguf"), "llama.cpp"),
    ],
)
def test_what_is_no_model_folder_is_refused_by_name(names: tuple[str, ...], said: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "m", *names)
    with pytest.raises(ConfigError) as caught:
        model_folder(str(folder))
    assert said in str(caught.value)
    assert f"local/{folder}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_there_or_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        model_folder(str(tmp_path / "nowhere"))
    file = tmp_path / "model.safetensors"
    file.write_text("")
    with pytest.raises(ConfigError, match="a file is there"):
        model_folder(str(file))


@pytest.mark.parametrize("missing", local_folder.NEEDED)
def test_a_missing_extra_is_named_before_anything_else(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_folder, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(ConfigError, match=rf"{missing}.*moot\[local\]"):
        make_model(ModelBinding(model="local/nowhere"), seed=1, answer_key=None)


def test_a_relative_folder_is_the_same_one_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_model("local/models/m") == f"local/{os.getcwd()}/models/m"
    assert absolute_model("local//srv/m") == "local//srv/m"
    for name in ("simulated?competence=0.8", "openai/m", "http://h/v1#a/b"):
        assert absolute_model(name) == name


def test_only_processes_with_weights_ask_for_a_gpu() -> None:
    local, served = RoleBinding(model="local//srv/m"), RoleBinding(model="http://h/v1#m")
    roles = Roles({"agent": [local, served, local], "judge": [local]})
    assert weight_owners(roles) == {("agent", "local//srv/m"), ("judge", "local//srv/m")}


def test_all_processes_find_a_place() -> None:
    for gpus, processes in product(range(1, 9), range(1, 20)):
        share = gpu_share(gpus, processes)
        assert 0.0 < share <= 1.0
        assert int(1.0 / share + 1e-9) * gpus >= processes, (gpus, processes)
