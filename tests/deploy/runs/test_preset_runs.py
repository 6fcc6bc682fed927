"""`--preset`: the paper's values below the user's, for its own protocol only."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.deploy.cli.multi_protocol import configs_by_protocol, unused_roles
from moot.deploy.cli.protocols import describe_protocol
from moot.deploy.results.figures.summary import summarise, summary_rows
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.resume import describe
from moot.deploy.runs.run import run
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.studies.ablation.grid import parse_axes
from moot.deploy.studies.ablation.prepare import prepare_grid
from moot.protocols.errors import ConfigError
from moot.protocols.presets.preset import preset_names, presets_of
from moot.protocols.registry import PROTOCOLS


def test_a_preset_chooses_its_protocol_and_sets_what_the_paper_states(tmp_path: Path) -> None:
    config = RunConfig.build(None, {"preset": "evince", "out": str(tmp_path / "run")})
    prepared = prepare(config)
    assert prepared.protocol.name == "evince"
    assert (prepared.settings["top_k"], prepared.settings["stop"]) == (3, "printed")
    assert {member.temperature for member in prepared.members} == {None}


def test_what_a_user_says_counts_more(tmp_path: Path) -> None:
    flags = {"preset": "evince", "set": {"top_k": 4}, "temperature": 0.5, "roles": {"judge": [{"top_p": 0.8}]}}
    prepared = prepare(RunConfig.build(None, {**flags, "out": str(tmp_path / "run")}))
    assert prepared.settings["top_k"] == 4
    assert {member.temperature for member in prepared.members} == {0.5}
    assert (prepared.bindings["agent"][0].top_p, prepared.bindings["judge"][0].top_p) == (None, 0.8)


def test_a_preset_s_run_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folders = {
        prepare(RunConfig.build(None, {"preset": name})).folder.name for name in ("confident-liar", "early-token")
    }
    assert len(folders | {prepare(RunConfig.build(None, {"protocol": "constructor-auditor"})).folder.name}) == 3


def test_stated_decoding_is_no_wish_of_the_user(tmp_path: Path) -> None:
    """A model that takes no temperature is spared the paper's; one that the user wrote down would be refused."""
    prepared = prepare(RunConfig.build(None, {"preset": "ceda", "task": "sample-claims", "out": str(tmp_path / "run")}))
    debaters = prepared.bindings["debater"]
    assert [member.temperature for member in debaters] == [0.2, 0.6]
    assert not any("temperature" in member.model_fields_set for member in debaters)
    assert {member.max_tokens for member in debaters} == {100}


def test_a_preset_of_another_protocol_is_refused() -> None:
    with pytest.raises(ConfigError, match="ceda"):
        RunConfig.build(None, {"preset": "ceda", "protocol": "selene"})


def test_of_several_protocols_only_its_own_has_it() -> None:
    config = RunConfig.build(None, {"preset": "selene", "protocol": "selene,single-agent"})
    own, other = configs_by_protocol(config, ["selene", "single-agent"])
    assert own.settings()["judging"]["variants"] == "paraphrase"
    assert other.settings() == {}
    assert not unused_roles(config, own)
    assert any("preset" in line for line in unused_roles(config, other))


def test_in_a_grid_over_protocols_its_own_cells_have_it(tmp_path: Path) -> None:
    base = RunConfig.build(None, {"preset": "selene", "out": str(tmp_path / "grid")})
    own, other = prepare_grid(base, parse_axes(["protocol=selene,always-debate"]))
    assert (own.prepared.settings["judging"]["variants"], own.prepared.config.preset) == ("paraphrase", "selene")
    assert (other.prepared.settings["judging"]["variants"], other.prepared.config.preset) == ("subset", None)


def test_a_run_with_a_preset_is_recorded_and_resumed(tmp_path: Path) -> None:
    flags = {"preset": "confident-liar", "limit": 2, "engine": "inline", "out": str(tmp_path / "run")}
    done = run(RunConfig.build(None, flags))
    assert done.status == "finished"
    assert describe(prepare(RunConfig.build(None, flags)))["preset"] == "confident-liar"
    assert ("preset", "confident-liar") in summary_rows(summarise(done.path))
    assert run(RunConfig.build(None, {**flags, "limit": 3})).worked


@pytest.mark.parametrize("name", sorted({*PROTOCOLS, *preset_names()}))
def test_every_protocol_and_preset_can_be_described(name: str) -> None:
    text = "\n".join(describe_protocol(name))
    settings = PROTOCOLS[name].settings_model.model_fields if name in PROTOCOLS else ()
    assert all(key in text for key in settings)
    published = name in preset_names() or bool(presets_of(name))
    assert ("the paper leaves open" in text) == published
