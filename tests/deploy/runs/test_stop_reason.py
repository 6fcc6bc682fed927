"""Why a run stopped, as text."""

from __future__ import annotations

import pytest

from moot.actors.agent.roles import RoleBinding
from moot.actors.debate.first_asks import NothingUsable
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.stop_reason import describe_stop

MEMBERS = [
    RoleBinding(model="openai/gpt-4o"),
    RoleBinding(model="openai/gpt-4o-mini"),
    RoleBinding(model="openai/gpt-4o", api_key_env="OTHER_KEY"),
]


@pytest.mark.parametrize(
    ("role", "command"),
    [
        ("agent", "moot doctor --model openai/gpt-4o"),
        ("agent/1", "moot doctor --model openai/gpt-4o-mini"),
        ("agent/2", "moot doctor --model openai/gpt-4o --api-key-env OTHER_KEY"),
        ("agent/4", "moot doctor --model openai/gpt-4o-mini"),
    ],
)
def test_asks_in_vain_name_the_command_for_the_model_of_their_role(role: str, command: str) -> None:
    why = f"{NothingUsable.kind}: {role}: none was usable: openai/gpt-4o-mini: unparsable: prose: none"
    said = describe_stop(why, RunConfig(protocol="ceda"), {"agent": MEMBERS})
    assert said.startswith("none was usable: openai/gpt-4o-mini: unparsable: prose: none; ")
    assert f"`{command} --protocol ceda`" in said
