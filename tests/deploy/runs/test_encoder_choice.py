"""`--encoder auto`: the encoder of each kind of run, that it is chosen once, and the warning about word encoders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from moot.actors.encoders import resolve
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.runs.caveats import log_caveats
from moot.deploy.runs.prepare import Prepared, prepare
from moot.deploy.runs.run import run
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import RunMismatch
from moot.protocols.selene.settings import DEFAULT_ENCODER, TAU_D

MINILM = "minilm-l6-v2@1b22665f3b9d"
REAL = "http://127.0.0.1:9/v1#some-model"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the weights of the small encoder are."""
    monkeypatch.setattr("moot.deploy.runs.prior_runs.minilm_installed", lambda: True)
    monkeypatch.setattr(resolve, "minilm_identity", lambda digest="": MINILM)


def prepared(tmp_path: Path, **options: Any) -> Prepared:
    return prepare(RunConfig.build({"out": str(tmp_path / "run"), "engine": "inline", "limit": 2, **options}))


@pytest.mark.parametrize(
    ("options", "encoder"),
    [
        ({"model": REAL}, MINILM),
        ({"model": REAL, "protocol": "always-debate"}, MINILM),
        ({"model": REAL, "encoder": "hashed-ngrams"}, DEFAULT_ENCODER),
        ({"model": "simulated"}, DEFAULT_ENCODER),
        ({"model": REAL, "roles": {"judge": "simulated"}}, DEFAULT_ENCODER),
        ({"model": REAL, "protocol": "single-agent"}, DEFAULT_ENCODER),
        ({"model": REAL, "set": {"gate.tau_d": TAU_D[DEFAULT_ENCODER]}}, DEFAULT_ENCODER),
        ({"model": REAL, "protocol": "constructor-auditor"}, DEFAULT_ENCODER),
    ],
)
@pytest.mark.usefixtures("installed")
def test_the_best_is_taken_where_d_compares_what_real_models_wrote(
    tmp_path: Path, options: dict[str, Any], encoder: str
) -> None:
    found = prepared(tmp_path, **options)
    assert found.config.encoder == encoder
    gate = found.settings.get("gate")
    if gate and gate["when"] == "selective":
        assert (gate["tau_d"], gate["tau_d_encoder"], found.d_untested) == (TAU_D[encoder], encoder, False)


def recorded(folder: Path, encoder: str) -> None:
    """Rewrite whose embeddings a finished run says it has compared."""
    file = folder / "run.yaml"
    content = read_run_yaml(RunFolder(folder))
    content["encoder"] = encoder
    gate = content["settings"]["gate"]
    gate["tau_d"], gate["tau_d_encoder"] = TAU_D.get(encoder), encoder
    file.write_text(yaml.safe_dump(content))


def test_a_run_that_has_begun_keeps_its_encoder(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(task="sample", engine="inline", limit=2, out=tmp_path / "run")
    request.getfixturevalue("installed")
    monkeypatch.setattr("moot.deploy.runs.prior_runs.is_simulated", lambda model: False)
    assert prepared(tmp_path, out=str(tmp_path / "new")).config.encoder == MINILM
    assert prepared(tmp_path).config.encoder == DEFAULT_ENCODER
    assert run(task="sample", engine="inline", limit=3, out=done.path).done == 3
    with pytest.raises(RunMismatch, match=f"encoder: was {DEFAULT_ENCODER}, now minilm"):
        run(task="sample", engine="inline", limit=3, out=done.path, encoder="minilm-l6-v2")
    for built_on in ({"reuse": str(done.path)}, {"model": f"replay/{done.path}"}):
        assert prepared(tmp_path, out=str(tmp_path / "new"), **built_on).config.encoder == DEFAULT_ENCODER


def test_who_compares_no_d_takes_over_no_encoder(tmp_path: Path) -> None:
    """It would embed a library of documents at somebody's price."""
    done = run(task="sample", engine="inline", limit=2, out=tmp_path / "run")
    recorded(done.path, "openai/text-embedding-3-large")
    options = {"out": str(tmp_path / "new"), "reuse": str(done.path)}
    assert prepared(tmp_path, **options, protocol="single-agent").config.encoder == DEFAULT_ENCODER
    assert prepared(tmp_path, **options).config.encoder == "openai/text-embedding-3-large"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": REAL}, True),
        ({"model": REAL, "encoder": "hashed-ngrams"}, True),
        ({}, False),
        ({"model": REAL, "set": {"gate.tau_d": "none"}}, False),
        ({"model": REAL, "protocol": "always-debate"}, False),
        ({"model": REAL, "encoder": "openai/x"}, False),
    ],
)
def test_real_models_get_a_warning_that_d_compares_words(tmp_path: Path, options: dict[str, Any], said: bool) -> None:
    with capture_logs() as logged:
        log_caveats(prepared(tmp_path, **options))
    lines = [entry["event"] for entry in logged if entry["event"].startswith("D compares words")]
    assert len(lines) == said
    assert all("pip install" in line and "--encoder minilm-l6-v2" in line for line in lines)
