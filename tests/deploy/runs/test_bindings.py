"""What a protocol says of its roles: how long replies are, and whether judges may debate, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from structlog.testing import capture_logs

from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.cli.multi_protocol import configs_by_protocol, unused_roles
from moot.deploy.runs.bindings import bind_roles
from moot.deploy.runs.caveats import log_caveats
from moot.deploy.runs.nested_settings import nested
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.run import run
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.case import Case
from moot.protocols.errors import ConfigError
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict
from moot.protocols.own_protocols import adopt_protocol
from moot.protocols.registry import make_protocol


class SilentProtocol:
    """Asks nobody."""

    roles = ("agent", "judge")

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        return Verdict(answer=None, how="silent")


class SeparateJudges(SilentProtocol):
    """Its judges should be others than its agents."""

    judges_apart = True


class Long(SilentProtocol):
    """Its judges have much to say."""

    reply_tokens: ClassVar[dict[str, int]] = {"judge": 1500}


class Duet(SilentProtocol):
    """Asks two agents, and shows pictures to judges."""

    most_members: ClassVar[dict[str, int]] = {"agent": 2}
    judges_see_pictures = True


LIKE = "http://127.0.0.1:9/v1#like"


def said(protocol: object, folder: Path, **roles: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Warnings of a run that is prepared but not executed."""
    config = RunConfig.build(None, {"model": "simulated", "roles": roles, "out": str(folder / "run")})
    with capture_logs() as logged:
        log_caveats(prepare(config, protocol=protocol))
    return [dict(entry) for entry in logged]


class TestJudgesApart:
    @pytest.mark.parametrize(
        ("agents", "judges", "both"),
        [
            (["openai/a"], ["openai/a"], ["openai/a"]),
            (["openai/a", LIKE], ["anthropic/b", LIKE, LIKE], [LIKE]),
            (["openai/a"], ["openai/b"], None),
            (["simulated"], ["simulated"], None),
            (["http://127.0.0.1:9/v1#simulated"], ["http://127.0.0.1:9/v1#simulated"], None),
        ],
    )
    def test_warns_of_a_judge_that_debates(
        self, agents: list[str], judges: list[str], both: list[str] | None, tmp_path: Path
    ) -> None:
        roles = {"agent": [{"model": name} for name in agents], "judge": [{"model": name} for name in judges]}
        told = said(SeparateJudges(), tmp_path, **roles)
        assert [(entry["models"], entry["log_level"]) for entry in told] == ([(both, "warning")] if both else [])

    def test_a_protocol_that_does_not_ask_for_it_is_left_alone(self, tmp_path: Path) -> None:
        assert said(SilentProtocol(), tmp_path, agent=[{"model": "openai/a"}], judge=[{"model": "openai/a"}]) == []

    def test_a_replay_does_not_judge_itself(self, tmp_path: Path) -> None:
        done = run(protocol=SeparateJudges(), task="sample", limit=1, engine="inline", out=tmp_path / "first")
        recorded = read_run_yaml(RunFolder(done.path)) | {"simulated": False}
        (done.path / "run.yaml").write_text(yaml.safe_dump(recorded))
        config = RunConfig.build(None, {"model": f"replay/{done.path}", "out": str(tmp_path / "again")})
        with capture_logs() as logged:
            log_caveats(prepare(config, protocol=SeparateJudges()))
        assert logged == []


class TestOneAgent:
    @pytest.mark.parametrize(
        ("settings", "unread"),
        [
            ({"agents": 1, "kappa.start": 0.5, "gate": True, "top_k": 3}, ["gate", "kappa"]),
            ({"agents": 1, "top_k": 3}, []),
            ({"kappa.start": 0.5, "gate": True}, []),
            ({"schedule": "none", "kappa": {"start": 0.5}}, ["kappa"]),
        ],
    )
    def test_unused_settings_are_reported(self, settings: dict[str, Any], unread: list[str], tmp_path: Path) -> None:
        config = RunConfig.build(
            None, {"protocol": "evince", "task": "sample-symptoms", "set": settings, "out": str(tmp_path / "run")}
        )
        with capture_logs() as logged:
            log_caveats(prepare(config))
        assert [entry["settings"] for entry in logged if "settings" in entry] == ([unread] if unread else [])

    @pytest.mark.parametrize("protocol", ["evince", "single-agent"])
    def test_a_judge_of_one_agent_is_refused_for_what_it_is(self, protocol: str) -> None:
        config = RunConfig.build(None, {"roles": {"judge": [{"model": "simulated"}]}})
        with pytest.raises(ConfigError, match="asks one agent here, and then no judge"):
            bind_roles(config, make_protocol(protocol, {"agents": 1}))
        with pytest.raises(ConfigError, match="has no role 'juge'"):
            bind_roles(RunConfig.build(None, {"roles": {"juge": [{}]}}), make_protocol(protocol, {"agents": 1}))


class TestTheProtocolsOwnDecoding:
    """A vote is sampled at 1 because answers that are only counted live on their diversity (SELENE, section 4.3)."""

    @pytest.mark.parametrize(
        ("protocol", "flags", "family", "name", "values"),
        [
            ("long", {}, "judge", "max_tokens", [1500]),
            ("long", {}, "agent", "max_tokens", [400]),
            (
                "long",
                {"roles": {"judge": [{"max_tokens": 70}, {"model": "openai/a"}]}},
                "judge",
                "max_tokens",
                [70, 1500],
            ),
            ("majority-vote", {}, "agent", "temperature", [1.0]),
            ("majority-vote", {"temperature": 0.2}, "agent", "temperature", [0.2]),
            ("selene", {}, "agent", "temperature", [0.3]),
            ("ceda", {}, "debater", "temperature", [0.2, 0.6]),
            ("ceda", {"roles": {"debater": [{}, {"temperature": 0.9}]}}, "debater", "temperature", [0.2, 0.9]),
            ("constructor-auditor", {}, "constructor", "top_p", [1.0]),
            ("constructor-auditor", {}, "synthesizer", "top_p", [0.9]),
            ("constructor-auditor", {"roles": {"constructor": {"top_p": 0.5}}}, "constructor", "top_p", [0.5]),
        ],
    )
    def test_it_is_the_default_and_what_the_run_says_counts_more(
        self, protocol: str, flags: dict[str, Any], family: str, name: str, values: list[float]
    ) -> None:
        made = adopt_protocol(Long()) if protocol == "long" else make_protocol(protocol)
        bound = bind_roles(RunConfig.build(None, flags), made)[family]
        assert [getattr(member, name) for member in bound] == values
        if not flags and name != "max_tokens":
            assert name not in bound[0].model_fields_set, "nobody wrote it down"


class TestEveryMemberIsAsked:
    @pytest.mark.parametrize(
        ("protocol", "settings", "family", "asked"),
        [
            ("selene", {}, "agent", 3),
            ("selene", {"agents": 4}, "agent", 4),
            ("single-agent", {}, "agent", 1),
            ("evince", {}, "agent", 2),
            ("socrasynth", {}, "agent", 2),
            ("socrasynth", {}, "moderator", 1),
            ("constructor-auditor", {}, "auditor", 1),
            ("ceda", {}, "debater", 2),
        ],
    )
    def test_one_more_than_are_asked_is_refused(
        self, protocol: str, settings: dict[str, int], family: str, asked: int
    ) -> None:
        made = make_protocol(protocol, settings)
        allowed = RunConfig.build(None, {"roles": {family: ["simulated"] * asked}})
        assert len(bind_roles(allowed, made)[family]) == asked
        more = RunConfig.build(None, {"roles": {family: ["simulated"] * (asked + 1)}})
        with pytest.raises(ConfigError, match=f"'{family}' has {asked + 1} members.*{asked} only") as refused:
            bind_roles(more, made)
        counted = family == "agent" and protocol in ("selene", "majority-vote", "evince")
        assert (f"--agents {asked + 1}" in str(refused.value)) == counted

    def test_judges_are_all_asked(self) -> None:
        five = RunConfig.build(None, {"roles": {"judge": ["simulated"] * 5}})
        for name in ("selene", "evince", "socrasynth", "constructor-auditor", "ceda", "judge-panel"):
            assert len(bind_roles(five, make_protocol(name))["judge"]) == 5

    def test_an_own_protocol_says_how_many_it_asks_and_whether_its_judges_see_pictures(self) -> None:
        made = adopt_protocol(Duet())
        assert made.judges_see_pictures
        assert not adopt_protocol(SilentProtocol()).judges_see_pictures
        with pytest.raises(ConfigError, match="asks 2 only"):
            bind_roles(RunConfig.build(None, {"roles": {"agent": ["simulated"] * 3}}), made)

    def test_a_replay_of_more_members_is_read_as_far_as_it_is_asked(self, tmp_path: Path) -> None:
        roles = {"agent": ["simulated", "simulated?competence=0.9", "simulated"]}
        done = run(task="sample", limit=1, engine="inline", roles=roles, out=tmp_path / "first")
        config = RunConfig.build(None, {"model": f"replay/{done.path}", "out": str(tmp_path / "again")})
        assert bind_roles(config, make_protocol("single-agent"))["agent"]


class TestProtocolsSideBySide:
    """What `--protocol A,B` hands to each."""

    def test_a_setting_of_one_protocol_reaches_that_one_only(self) -> None:
        flags = {"set": {"selene.gate.tau_d": 0.2, "evince": {"agents": 3}, "selene": {"gate": {"tau_m": 0.4}}}}
        made = configs_by_protocol(RunConfig.build(None, flags), ["selene", "evince"])
        assert [nested(each.set) for each in made] == [{"gate": {"tau_d": 0.2, "tau_m": 0.4}}, {"agents": 3}]

    def test_it_counts_more_than_a_setting_of_all(self) -> None:
        config = RunConfig.build(None, {"set": {"gate.tau_d": 0.1, "majority-vote.vote.samples": 5}})
        made = configs_by_protocol(config, ["selene", "majority-vote"])
        assert [nested(each.set) for each in made] == [
            {"gate": {"tau_d": 0.1}},
            {"gate": {"tau_d": 0.1}, "vote": {"samples": 5}},
        ]
        config = RunConfig.build(None, {"set": {"gate.tau_d": 0.1, "selene.gate.tau_d": 0.2}})
        made = configs_by_protocol(config, ["selene", "majority-vote"])
        assert [nested(each.set)["gate"]["tau_d"] for each in made] == [0.2, 0.1]

    def test_a_setting_that_one_lacks_names_the_way_out(self) -> None:
        config = RunConfig.build(None, {"set": {"gate.tau_d": 0.2}})
        with pytest.raises(ConfigError, match=r"'evince'.*`gate`.*PROTOCOL\.KEY"):
            configs_by_protocol(config, ["selene", "evince"])

    def test_a_setting_of_a_protocol_that_does_not_run_is_refused(self) -> None:
        config = RunConfig.build(None, {"set": {"ceda.max_turns": 4}})
        with pytest.raises(ConfigError, match=r"ceda\.max_turns.*not part of this run"):
            configs_by_protocol(config, ["selene", "evince"])

    def test_missing_roles_are_reported_and_the_run_continues(self, tmp_path: Path) -> None:
        file = tmp_path / "run.yaml"
        file.write_text("roles: {agent: [simulated, simulated], judge: simulated}\n")
        made = configs_by_protocol(RunConfig.build(file), ["selene", "single-agent"])
        assert [{family: len(each.roles[family]) for family in each.roles} for each in made] == [
            {"agent": 2, "judge": 1},
            {"agent": 1},
        ]
        told = [unused_roles(RunConfig.build(file), each) for each in made]
        assert told[0] == []
        assert any("'judge'" in line for line in told[1])
        assert any("'agent'" in line and "1 of 2" in line for line in told[1])

    def test_a_member_that_no_protocol_asks_is_refused(self) -> None:
        config = RunConfig.build(None, {"roles": {"agent": ["simulated"] * 4}})
        with pytest.raises(ConfigError, match="'agent' has 4 members"):
            configs_by_protocol(config, ["selene", "single-agent"])

    def test_a_role_that_a_setting_takes_away_is_not_asked(self) -> None:
        flags = {"set": {"evince": {"crit_turns": "none", "gate": False}}, "roles": {"judge": ["simulated"]}}
        with pytest.raises(ConfigError, match=r"none of these .*'judge'"):
            configs_by_protocol(RunConfig.build(None, flags), ["evince", "single-agent"])
