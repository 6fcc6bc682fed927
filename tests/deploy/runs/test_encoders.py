"""A run's encoder: named, recorded, checked before anything is written, and fitted to the gate's threshold."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from openai_server import simulated_server
from structlog.testing import capture_logs

from moot.actors.models.retry import RetryPolicy
from moot.deploy.runs.caveats import log_caveats
from moot.deploy.runs.flag_parsers import parse_settings
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.run import run
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.studies.calibration.gate import calibrate
from moot.protocols.errors import ConfigError, MissingKey, ModelUnavailable, RunMismatch
from moot.protocols.registry import make_protocol

HASHED = "hashed-ngrams-512-v1"


def small(out: Path, **options: Any) -> dict[str, Any]:
    return {"task": "sample", "engine": "inline", "out": out, "limit": 12, **options}


def content(out: Path) -> Any:
    return yaml.safe_load((out / "run.yaml").read_text())


@pytest.fixture(autouse=True)
def _no_wait_before_another_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.runs.checks.PROBE_RETRIES", RetryPolicy(max_attempts=2, base_s=0.0))


@pytest.fixture(scope="module")
def encoder() -> Iterator[str]:
    with simulated_server(None) as port:
        yield f"http://127.0.0.1:{port}/v1#vectors"


def test_the_encoder_is_recorded_and_used(tmp_path: Path, encoder: str) -> None:
    run(**small(tmp_path / "default"))
    done = run(**small(tmp_path / "served", encoder=encoder))
    assert (done.status, done.failed) == ("finished", 0)
    written = content(tmp_path / "served")
    assert (content(tmp_path / "default")["encoder"], written["encoder"]) == (HASHED, encoder)
    gate = written["settings"]["gate"]
    assert (gate["tau_d"], gate["tau_d_encoder"]) == (None, encoder)
    assert set(done.table("embeddings")["encoder"].to_pylist()) == {encoder}
    events = [row for row in done.table("events").to_pylist() if row["kind"] == "gate"]
    assert len(events) == 12
    assert all('"tau_d":null' in row["data"] and '"d":null' not in row["data"] for row in events)


def test_a_run_resumes_with_its_encoder_only(tmp_path: Path, encoder: str) -> None:
    run(**small(tmp_path / "run", limit=4))
    assert run(**small(tmp_path / "run", limit=6, encoder=HASHED)).done == 6
    with pytest.raises(RunMismatch, match=f"encoder: was {HASHED}"):
        run(**small(tmp_path / "run", limit=8, encoder=encoder))


def test_the_key_is_named_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOT_TEST_TOKEN", "s3cret-token")
    with simulated_server(None, token_env="MOOT_TEST_TOKEN") as port:
        options = small(tmp_path / "run", limit=3, encoder=f"http://127.0.0.1:{port}/v1#m")
        with pytest.raises(ModelUnavailable, match="HTTP 401"):
            run(**options)
        assert not (tmp_path / "run").exists()
        done = run(**options, encoder_key_env="MOOT_TEST_TOKEN")
        monkeypatch.setenv("MOOT_OTHER_TOKEN", "s3cret-token")
        run(**options | {"limit": 4}, encoder_key_env="MOOT_OTHER_TOKEN")
    assert content(done.path)["encoder_key_env"] == "MOOT_OTHER_TOKEN"
    for file in done.path.rglob("*"):
        assert not file.is_file() or b"s3cret-token" not in file.read_bytes()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"encoder": "hashed-ngram"}, ConfigError, "did you mean 'hashed-ngrams'?"),
        ({"encoder": "sentence-transformers/nowhere"}, ConfigError, "models are not downloaded"),
        ({"encoder": "http://127.0.0.1:9/v1#m"}, ModelUnavailable, "cannot reach http://127.0.0.1:9"),
        ({"encoder": "openai/x", "encoder_key_env": "NOT_SET_ANYWHERE"}, MissingKey, "NOT_SET_ANYWHERE"),
        ({"encoder_key_env": "sk-pasted-0123456789"}, ConfigError, "`encoder_key_env`"),
        ({"encoder": "openai/x", "set": {"gate.tau_d": 0.2}}, ConfigError, "gate.tau_d=0.2"),
        ({"encoder": "openai/x", "set": {"gate.tau_d_encoder": "y"}}, ConfigError, "encoder 'y'"),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_written(
    tmp_path: Path, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refused:
        run(**small(tmp_path / "run"), **options)
    assert message in str(refused.value)
    assert "sk-pasted" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, False),
        ({"encoder": "openai/x"}, True),
        ({"encoder": "openai/x", "set": {"gate.tau_d": None}}, False),
        ({"encoder": "openai/x", "protocol": "always-debate"}, False),
        ({"encoder": "openai/x", "set": {"gate.tau_d": 0.1, "gate.tau_d_encoder": "openai/x"}}, False),
    ],
)
def test_a_gate_that_does_not_test_d_is_known(options: Any, said: bool) -> None:
    prepared = prepare(RunConfig.build(options))
    assert prepared.d_untested is said
    tests_d = prepared.settings["gate"]["tau_d"] is not None
    assert tests_d is (not options.get("encoder") or "gate.tau_d_encoder" in options.get("set", {}))


def test_a_protocol_that_is_given_as_an_object_is_fitted_to_the_encoder_too() -> None:
    assert prepare(RunConfig(encoder="openai/x"), protocol=make_protocol("selene")).settings["gate"]["tau_d"] is None


def test_calibrating_gives_options_that_a_run_takes(tmp_path: Path, encoder: str) -> None:
    both = run(**small(tmp_path / "both", limit=20, encoder=encoder, set={"both_branches": True}))
    found = calibrate(both.path, holdout=0.5)
    assert found.encoder == encoder
    settings = parse_settings(word for word in shlex.split(found.set_line) if word != "--set")
    assert settings["gate.tau_d_encoder"] == encoder
    prepared = prepare(RunConfig.build({"encoder": encoder, "set": settings}))
    assert prepared.settings["gate"]["tau_d"] == settings["gate.tau_d"] > 0.0
    with pytest.raises(ConfigError, match=re.escape(encoder)):
        prepare(RunConfig.build({"set": settings}))


@pytest.mark.parametrize(
    ("encoder", "bound", "said"),
    [
        ("http://127.0.0.1:9/v1#e", {"max_tokens": 5}, True),
        ("openai/text-embedding-3-small", {"max_cost_usd": 1.0}, True),
        ("openai/text-embedding-3-small", {}, False),
        ("hashed-ngrams", {"max_tokens": 5}, False),
    ],
)
def test_a_budget_that_does_not_see_embeddings_says_so(
    encoder: str, bound: dict[str, Any], said: bool, tmp_path: Path
) -> None:
    options = {"encoder": encoder, "out": str(tmp_path / "run"), "set": {"gate.tau_d": "none"}, **bound}
    prepared = prepare(RunConfig.build(None, options))
    with capture_logs() as logged:
        log_caveats(prepared)
    assert any("embeddings are not counted by the budgets" in entry["event"] for entry in logged) is said
