"""From `--over` flags to cells: how values are read and named, and what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.deploy.runs.run import run
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.studies.ablation.grid import baseline_of, cell_config, cells_of, check_keys, parse_axes
from moot.deploy.studies.ablation.prepare import check_grid, find_grid_folder, prepare_grid, write_grid_file
from moot.protocols.errors import ConfigError, RunMismatch, UserError
from moot.protocols.tasks import open_task

SAMPLE = open_task("sample")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("flag", "values"),
    [
        ("k=0.2,0.35,off", [0.2, 0.35, False]),
        ("k=on,false,none", [True, False, "none"]),
        ("k=1,true", [1, True]),
        ("k=null,~x", [None, "~x"]),
        ("k='a,b',\"c,d\",e", ["a,b", "c,d", "e"]),
        ("k=[1,2],[3,4]", [[1, 2], [3, 4]]),
        ("k=['a,b]',c],d", [["a,b]", "c"], "d"]),
        ("k={a: 1, b: 2},{a: 3}", [{"a": 1, "b": 2}, {"a": 3}]),
        ("k=it's,so", ["it's", "so"]),
        ("k= 2 , 3 ", [2, 3]),
        ("model=simulated?competence=0.9,http://127.0.0.1:1/v1#m", ["simulated?competence=0.9", "http://127.0.0.1:1/v1#m"]),
        ("model=7,8", ["7", "8"]),
        ("seed=7,8", [7, 8]),
    ],
)  # fmt: skip
def test_values_are_read_as_settings_are(flag: str, values: list[object]) -> None:
    (axis,) = parse_axes([flag])
    assert [value.value for value in axis.values] == values
    assert [type(value.value) for value in axis.values] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "nothing varies"),
        (["agents"], "KEY=VALUE,VALUE"),
        (["=2,3"], "KEY=VALUE,VALUE"),
        (["agents="], "KEY=VALUE,VALUE"),
        (["agents=2,,3"], "KEY=VALUE,VALUE"),
        (["agents=2,3,"], "KEY=VALUE,VALUE"),
        (["agents=2"], "--agents"),
        (["gate.tau_d=2"], "--set"),
        (["agents=2,3,2"], "'2' is given twice"),
        (["gate.tau_d=0.2,0.20"], "'0.2' and '0.20'"),
        (["gate=on,true"], "'on' and 'true'"),
        (["k=~,null"], "'~' and 'null'"),
        (["agents=2,3", "agents=4,5"], "--over agents "),
        (["k=[1,2"], "not valid YAML"),
        (["role.agent=a,[a]"], "both mean"),
        (["role.agent=[],b"], "[A,B]"),
        (["role.agent=[a,],b"], "in brackets"),
        (["role.agent=[a,b]"], "one value"),
        (["role.agent={model: [},b"], "not valid YAML"),
    ],
)
def test_flags_of_another_form_are_refused(flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_axes(flags)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_cells_are_every_combination_in_order_with_names_that_a_folder_can_have() -> None:
    axes = parse_axes(["model=simulated?competence=0.9,a/b,a?b", "seed=1,2"])
    cells = cells_of(axes)
    assert len(cells) == 6
    assert cells[0].name == "model=simulated-competence=0.9,seed=1"
    assert [cell.values["seed"].value for cell in cells] == [1, 2, 1, 2, 1, 2]
    names = [cell.name for cell in cells]
    assert len(set(names)) == 6, "values that are spelled alike in a folder's name are told apart"
    assert all(name.startswith("model=a-b-") for name in names[2:])
    secret = parse_axes(["model=http://me:hunter2@host/v1#m,simulated"])
    assert "hunter2" not in f"{cells_of(secret)[0].name} {secret[0].values[0].text}"
    assert secret[0].values[0].value == "http://me:hunter2@host/v1#m"


@given(st.lists(st.text(min_size=1, max_size=400), min_size=2, max_size=4))
def test_names_are_safe_and_differ_whatever_the_values(texts: list[str]) -> None:
    try:
        axes = parse_axes([f"k={','.join(texts)}", f"model={','.join(texts)}"])
    except ConfigError:
        return
    names = [cell.name for cell in cells_of(axes)]
    assert len(set(names)) == len(names)
    assert all(0 < len(name.encode()) < 255 and "/" not in name and not name.startswith(".") for name in names)


def test_the_baseline_is_named_by_values() -> None:
    axes = parse_axes(["gate.tau_d=0.2,0.35,off", "agents=2,3"])
    assert baseline_of(axes, []).name == "gate.tau_d=0.2,agents=2"
    assert baseline_of(axes, ["agents=3", "gate.tau_d=off"]).name == "gate.tau_d=off,agents=3"
    assert baseline_of(axes, ["gate.tau_d=0.350"]).name == "gate.tau_d=0.35,agents=2"
    for flag, message in (("agents=4", "it has 2, 3"), ("agent=3", "did you mean 'agents'"), ("agents", "KEY=VALUE")):
        with pytest.raises(ConfigError, match=message):
            baseline_of(axes, [flag])


@pytest.mark.parametrize(
    ("over", "base", "message"),
    [
        ("gate.tau=1,2", {}, "did you mean 'gate.tau_d'|did you mean 'gate.tau_p'"),
        ("agnts=1,2", {}, "did you mean 'agents'"),
        ("limit=1,2", {"limit": 9}, "limit"),
        ("agents=1,2", {"agents": 2}, "--over agents and --agents "),
        ("gate.tau_d=1,2", {"set": {"gate": {"tau_d": 1}}}, "--over gate.tau_d and --set gate.tau_d "),
        ("agents=1,2", {"set": {"agents": 1}}, "--over agents and --set agents "),
        ("agents=1,2", {"protocol": "selene,single-agent"}, "one protocol is expected"),
    ],
)
def test_keys_that_cannot_vary_are_refused(over: str, base: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_keys(parse_axes([over]), RunConfig.build(base), base)


def test_a_cell_is_its_base_with_its_values() -> None:
    base = RunConfig.build({"set": {"gate": {"tau_d": 0.1, "tau_m": 0.2}}, "limit": 5, "engine": "inline"})
    cells = cells_of(parse_axes(["gate.tau_d=0.2,off", "seed=1,2"]))
    made = cell_config(base, cells[3], "there")
    assert made.settings() == {"gate": {"tau_d": False, "tau_m": 0.2}}
    assert (made.seed, made.limit, made.engine, made.out) == (2, 5, "inline", "there/gate.tau_d=off,seed=2")


@pytest.mark.parametrize(
    ("over", "base", "message"),
    [
        (["agents=2,x"], {}, "cell agents=x: --over agents: "),
        (["gate.when=never,always", "agents=1,2"], {}, "cell gate.when=always,agents=1: "),
        (["gate.tau_d=off,none"], {}, "cells gate.tau_d=off and gate.tau_d=none "),
        (["model=simulated,simulated?competence=0.1"], {"roles": {"agent": "simulated", "judge": "simulated"}}, "same"),
        (["protocol=selene,selen"], {}, "cell protocol=selen: .*'selene'"),
        (["agents=1,2"], {"protocol": "single-agent"}, "cell agents=2: "),
        (["agents=2,3"], {"task": "boolq:-"}, "boolq:-"),
        (["agents=2,3"], {"task": "boolq:bad.jsonl"}, r"^bad.jsonl:1: field `answer`"),
        (["agents=2,3"], {"reuse": "nowhere"}, "no run there"),
    ],
)
def test_every_cell_is_checked_before_the_first_one(over: list[str], base: dict[str, object], message: str) -> None:
    Path("bad.jsonl").write_text('{"question": "q", "answer": 3, "passage": "p"}\n')
    before = sorted(Path.cwd().rglob("*"))
    with pytest.raises(UserError, match=message):
        prepare_grid(RunConfig.build(base), parse_axes(over))
    assert sorted(Path.cwd().rglob("*")) == before


def test_models_and_folders_are_checked_too() -> None:
    grid = prepare_grid(RunConfig.build({}), parse_axes(["model=simulated,http://127.0.0.1:9/v1#m"]))
    with pytest.raises(UserError, match=r"cell model=http-127\.0\.0\.1-9-v1-m: "):
        check_grid(grid)
    axes = parse_axes(["agents=2,3"])
    run(agents=3, engine="inline", limit=1, seed=1, out="out/agents=3")
    with pytest.raises(RunMismatch, match=r"cell agents=3: .*seed: was 1, now 0"):
        check_grid(prepare_grid(RunConfig.build({"out": "out", "limit": 1}), axes))
    with pytest.raises(ConfigError, match="this is a run's folder"):
        prepare_grid(RunConfig.build({"out": "out/agents=3"}), axes)


@pytest.mark.parametrize(
    ("over", "reuse", "message"),
    [("seed=1,2", None, "replies of their own"), ("agents=2,3", "x", "exclude each other")],
)
def test_sharing_replies_excludes_what_it_would_spoil(over: str, reuse: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        prepare_grid(RunConfig(reuse=reuse), parse_axes([over]), share_replies=True)


def test_a_folder_has_one_grid_whose_values_may_grow() -> None:
    base, axes = RunConfig(), parse_axes(["gate.tau_d=0.2,off", "agents=2,3"])
    out = find_grid_folder(base, axes, share_replies=False, task=SAMPLE)
    assert out == "runs/ablate-selene-gate.tau_d-agents-sample-s0"
    write_grid_file(out, axes, cells_of(axes)[0], share_replies=True)
    more = parse_axes(["gate.tau_d=0.2,off,0.3", "agents=2,3"])
    assert find_grid_folder(base, more, share_replies=True, task=SAMPLE) == out
    with pytest.raises(RunMismatch, match="--share-replies"):
        find_grid_folder(base, axes, share_replies=False, task=SAMPLE)
    with pytest.raises(RunMismatch, match=r"over gate\.tau_d, agents"):
        find_grid_folder(RunConfig(out=out), parse_axes(["agents=2,3"]), share_replies=True, task=SAMPLE)
    file = Path(out, "grid.yaml")
    whole = file.read_bytes()
    flipped = [bytes([*whole[:at], whole[at] ^ 1, *whole[at + 1 :]]) for at in range(len(whole))]
    for damaged in (*flipped, *(whole[:length] for length in range(len(whole)))):
        file.write_bytes(damaged)
        with pytest.raises(ConfigError, match=r"grid\.yaml"):
            find_grid_folder(base, axes, share_replies=True, task=SAMPLE)


def test_a_role_s_models_vary_alone_or_in_brackets() -> None:
    (axis,) = parse_axes(
        ["role.judge=[openai/a,http://127.0.0.1:1/v1#m],simulated?competence=0.9,['a,b',{model: c, temperature: 0.1}]"]
    )
    assert [value.value for value in axis.values] == [
        [{"model": "openai/a"}, {"model": "http://127.0.0.1:1/v1#m"}],
        [{"model": "simulated?competence=0.9"}],
        [{"model": "a,b"}, {"model": "c", "temperature": 0.1}],
    ]
    assert cells_of([axis])[0].name == "role.judge=openai-a+http-127.0.0.1-1-v1-m"
    axes = parse_axes(["role.agent=[simulated,simulated?competence=0.9],simulated", "gate.when=always,never"])
    base = RunConfig.build({"roles": {"judge": "simulated?competence=0.8"}})
    check_keys(axes, base, {"roles": {"judge": []}})
    config = cell_config(base, cells_of(axes)[1], "out")
    assert config.roles == {
        "judge": [{"model": "simulated?competence=0.8"}],
        "agent": [{"model": "simulated"}, {"model": "simulated?competence=0.9"}],
    }
    assert config.settings() == {"gate": {"when": "never"}}
    other = baseline_of(axes, ["role.agent=[simulated]"])
    assert other.values["role.agent"].value == [{"model": "simulated"}]


def test_a_role_that_a_flag_fixes_or_that_the_protocol_lacks_is_refused() -> None:
    axes = parse_axes(["role.judge=simulated,simulated?competence=0.9"])
    with pytest.raises(ConfigError, match="--role judge"):
        check_keys(axes, RunConfig(), {"roles": {"judge": [{"model": "simulated"}]}})
    with pytest.raises(ConfigError, match="roles"):
        check_keys(parse_axes(["roles=a,b"]), RunConfig(), {})
    axes = parse_axes(["role.judg=simulated,simulated?competence=0.9"])
    check_keys(axes, RunConfig(), {})
    with pytest.raises(ConfigError, match="'judg'"):
        prepare_grid(RunConfig(), axes)
