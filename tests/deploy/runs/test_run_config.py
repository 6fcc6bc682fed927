"""Configurations: where fields come from, who wins, and how bad ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from moot.deploy.runs.flag_parsers import parse_roles, parse_settings
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.resume import describe, differences
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.run_folders import default_out, run_folder
from moot.protocols.errors import ConfigError


def written(folder: Path, text: str) -> Path:
    file = folder / "run.yaml"
    file.write_text(text)
    return file


def test_flags_win_over_the_file_setting_by_setting_and_family_by_family(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        seed: 3
        limit: 10
        set:
          gate: {tau_d: 0.3, tau_m: 0.2}
          debate.max_rounds: 2
        roles:
          agent: simulated?competence=0.9
          judge: {model: simulated, temperature: 0}
        """,
    )
    flags = {"seed": 5, "limit": None, "set": {"gate.tau_d": 0.1}, "roles": parse_roles(["judge=simulated,openai/x"])}
    config = RunConfig.build(file, flags)
    assert (config.seed, config.limit) == (5, 10)
    assert config.settings() == {"gate": {"tau_d": 0.1, "tau_m": 0.2}, "debate": {"max_rounds": 2}}
    assert config.roles == {
        "agent": [{"model": "simulated?competence=0.9"}],
        "judge": [{"model": "simulated"}, {"model": "openai/x"}],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("protocl: selene", "run.yaml: unknown key 'protocl': did you mean 'protocol'?"),
        ("roles: {judge: {temprature: 1}}", "run.yaml: `roles.judge`: unknown key 'temprature': did you mean"),
        ("roles: {judge: {temperature: 9}}", "`temperature`: expected at most 2, not 9"),
        ("roles: {judge: []}", "`roles.judge`: expected at least one model"),
        ("seed: many", "run.yaml: `seed`: expected a whole number, not 'many'"),
        ("seed: 1\ntask: [", "run.yaml:2: not valid YAML"),
        ("- a\n- b", "run.yaml:1: expected keys and values, found list"),
        ("placement: everywhere", "`placement`: expected 'actors' or 'packed', not 'everywhere'"),
        ("set: {gate: {tau_d: 1}, gate.tau_d: 2}", "setting `gate.tau_d` is given twice"),
        ("set: {gate: 1, gate.tau_d: 2}", "setting `gate` is given twice"),
        ("sessions: []", "unknown key 'sessions'"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        RunConfig.build(written(tmp_path, text))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: no such file"):
        RunConfig.build(tmp_path / "absent.yaml")
    with pytest.raises(ConfigError, match="is a directory"):
        RunConfig.build(tmp_path)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match=r"binary.yaml"):
        RunConfig.build(binary)


@pytest.mark.parametrize("key", ["api_key_env", "api_key"])
def test_a_key_pasted_into_a_configuration_is_not_shown(tmp_path: Path, key: str) -> None:
    file = written(tmp_path, f"roles: {{judge: {{model: openai/x, {key}: my-very-private-words}}}}")
    with pytest.raises(ConfigError) as refused:
        RunConfig.build(file)
    assert "private" not in str(refused.value)


@pytest.mark.parametrize(
    ("parse", "flags", "message"),
    [
        (parse_roles, ["judge"], "expected NAME=MODEL"),
        (parse_roles, ["judge="], "expected NAME=MODEL"),
        (parse_roles, ["judge=a,,b"], "expected NAME=MODEL"),
        (parse_roles, ["judge=a", "judge=b"], "--role judge is given twice"),
        (parse_settings, ["gate.tau_d"], "expected KEY=VALUE"),
        (parse_settings, ["=1"], "expected KEY=VALUE"),
        (parse_settings, ["a=1", "a=2"], "given twice"),
        (parse_settings, ["a=["], "not valid YAML"),
    ],
)
def test_bad_flags(parse: Callable[[list[str]], object], flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(flags)


def test_agents_is_a_setting_of_the_protocol() -> None:
    assert prepare(RunConfig(agents=5)).settings["agents"] == 5
    with pytest.raises(ConfigError, match="`agents` is given twice"):
        RunConfig(agents=5, set={"agents": 4}).settings()
    with pytest.raises(ConfigError, match=r"`agents`.*'single-agent'"):
        prepare(RunConfig(protocol="single-agent", agents=3))


def test_the_default_folder_says_which_model_speaks() -> None:
    models = ("simulated", "simulated?competence=0.9", "openai/gpt-4o-mini", "http://127.0.0.1:8000/v1#a/b")
    assert [prepare(RunConfig(model=model)).config.out for model in models] == [
        "runs/selene-sample-s0",
        "runs/selene-sample-s0-simulated-competence-0.9",
        "runs/selene-sample-s0-openai-gpt-4o-mini",
        "runs/selene-sample-s0-http-127.0.0.1-8000-v1-a-b",
    ]
    assert default_out("my.module:Class", "mine", 4) == "runs/my.module-Class-mine-s4"
    long = [default_out("p", "t", 0, f"openai/{'x' * 300}{end}") for end in "ab"]
    assert long[0] != long[1]
    assert max(map(len, long)) < 100


def test_a_folder_with_other_files_is_no_place_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"\(notes\.txt\)"):
        run_folder(str(tmp_path))
    with pytest.raises(ConfigError, match="this is a file"):
        run_folder(str(tmp_path / "notes.txt"))
    with pytest.raises(ConfigError, match="URI"):
        run_folder("exp:1/run")
    empty = tmp_path / "empty"
    (empty / "journal").mkdir(parents=True)
    assert run_folder(str(empty)) == empty


def test_what_run_yaml_says_configures_the_same_run_again(tmp_path: Path) -> None:
    flags: dict[str, Any] = {
        "agents": 4,
        "encoder": "openai/x",
        "limit": 7,
        "out": str(tmp_path / "run"),
        "roles": {"judge": ["simulated", {"model": "simulated", "temperature": 0.0}]},
        "set": {"gate.tau_d": None, "debate": {"max_rounds": 2}},
    }
    first = prepare(RunConfig.build(None, flags))
    file = written(tmp_path, yaml.safe_dump(describe(first), sort_keys=False))
    again = prepare(RunConfig.build(file))
    assert again.config == first.config
    assert list(differences(describe(first), describe(again))) == []
    fitted = {"gate.tau_d": 0.2, "gate.tau_d_encoder": "openai/x"}
    changed = prepare(RunConfig.build(file, {"set": fitted, "seed": 1, "limit": 3}))
    assert list(differences(describe(first), describe(changed))) == [
        "seed: was 0, now 1",
        "gate.tau_d: was none, now 0.2",
        "gate.tau_d_encoder: was hashed-ngrams-512-v1, now openai/x",
        "limit: was 7, now 3 (only a larger limit can be resumed)",
    ]


def test_what_may_change_when_a_run_resumes() -> None:
    first = RunConfig(out="x", limit=5)
    other = {"engine": "inline", "placement": "packed", "max_open": 3, "limit": 9, "attended": True}
    judge = {"timeout_s": 5, "api_key_env": "MINE"}
    second = RunConfig.build(first, {**other, "retry_failed": True, "roles": {"judge": judge}})
    assert list(differences(describe(prepare(first)), describe(prepare(second)))) == []
