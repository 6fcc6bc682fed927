"""Runs on `anthropic/NAME` from Python: what is refused before them, and SELENE by the simulated server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openai_server import simulated_server

from moot.deploy.runs.outcome import Run
from moot.deploy.runs.run import run
from moot.protocols.errors import CapabilityMissing, ConfigError


def small(out: Path) -> dict[str, Any]:
    return {"task": "sample", "engine": "inline", "out": out, "limit": 20}


def turns_of(done: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done.table("turns").to_pylist()
    return found


def roles_at(port: int) -> dict[str, Any]:
    """Agents and judges on the simulated server's Anthropic wire."""
    member = {
        "model": "anthropic/simulated",
        "base_url": f"http://127.0.0.1:{port}",
        "api_key_env": "MOOT_TEST_KEY",
    }
    return {"agent": member, "judge": member}


@pytest.mark.parametrize("set_", [{}, {"gate.intrinsic": "printed"}])
def test_anthropic_without_a_word_on_log_probabilities_is_refused_with_both_ways_out(
    tmp_path: Path, set_: dict[str, str]
) -> None:
    with pytest.raises(CapabilityMissing, match=r"anthropic/m.*=none.*=resampled"):
        run(**{**small(tmp_path / "run"), "model": "anthropic/m", "set": set_})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("intrinsic", ["none", "resampled"])
def test_selene_on_the_anthropic_wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, intrinsic: str) -> None:
    monkeypatch.setenv("MOOT_TEST_KEY", "a-key-that-nobody-may-see")
    chosen = {"limit": 6, "seed": 0, "set": {"gate.intrinsic": intrinsic}}
    with simulated_server(None, seed=0) as port:
        roles = roles_at(port)
        done = run(**{**small(tmp_path / "served"), **chosen, "model": "anthropic/simulated", "roles": roles})
    assert (done.done, done.failed) == (6, 0)
    assert done.summary.simulated is True
    turns = turns_of(done)
    assert {row["model"] for row in turns} == {"anthropic/simulated"}
    assert all(row["prompt_tokens"] and row["completion_tokens"] for row in turns)
    assert all(row["p_normalised"] is None for row in turns)
    keys = [path for path in done.path.rglob("*") if path.is_file() and b"a-key-that" in path.read_bytes()]
    assert keys == []


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("anthropic/claude-opus-5-5", {"temperature": 0.3}, "takes no `temperature`"),
        ("anthropic/claude-haiku-4-5", {"temperature": 1.5}, "takes a temperature of at most 1, not 1.5"),
        ("anthropic/claude-haiku-4-5", {"top_logprobs": 3}, "gives at most 0 alternatives per token"),
    ],
)
def test_what_a_model_does_not_take_is_refused(
    tmp_path: Path, model: str, settings: dict[str, float], message: str
) -> None:
    wanted = {"model": model, "roles": {"judge": settings}, "set": {"gate.intrinsic": "none"}}
    with pytest.raises(ConfigError, match=message):
        run(**{**small(tmp_path / "run"), **wanted})
    assert not (tmp_path / "run").exists()
