"""Users' own protocols: their names and settings, and the errors of wrong ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from moot.protocols.case import Case
from moot.protocols.errors import ConfigError
from moot.protocols.registry import make_protocol

SOURCE = """
from pydantic import BaseModel
from moot import DebateProtocol, Verdict

class Knobs(BaseModel):
    loud: bool = False

class Plain:
    class Inner:
        async def run(self, case, floor): ...

    async def run(self, case, floor):
        return Verdict(answer="Yes", how="plain")

class Configured:
    Settings = Knobs
    name = "mine"
    roles = ("debater", "judge")
    needs_logprobs = True

    def __init__(self, settings):
        self.settings = settings

    async def run(self, case, floor):
        return Verdict(answer=str(self.settings.loud), how="mine")

class Abstract(DebateProtocol):
    roles = ("agent",)

class Subclass(DebateProtocol):
    async def run(self, case, floor):
        return Verdict(answer="No", how="subclass")

class Mistyped(Subclass):
    need_logprobs = True

class Malformed(Plain):
    roles = "agent"

NoClass = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_protocols.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_protocols", raising=False)
    return "my_protocols"


async def test_a_protocol_of_ones_own(module: str) -> None:
    case: Any = Case(id="c", question="?")
    floor: Any = None
    plain = make_protocol(f"{module}:Plain")
    assert (plain.name, plain.roles, plain.needs_logprobs) == ("my_protocols:Plain", ("agent",), False)
    assert (await plain.run(case, floor)).answer == "Yes"
    short = make_protocol(f"{module}:Subclass")
    assert (short.name, short.roles, (await short.run(case, floor)).answer) == (f"{module}:Subclass", ("agent",), "No")
    mine = make_protocol(f"{module}:Configured", {"loud": True})
    assert (mine.name, mine.roles, mine.needs_logprobs) == ("mine", ("debater", "judge"), True)
    assert (await mine.run(case, floor)).answer == "True"


@pytest.mark.parametrize(
    ("path", "settings", "said"),
    [
        ("my_protocols:Plian", {}, "my_protocols has no 'Plian': did you mean 'Plain'?"),
        ("my_protocols:plain", {}, "did you mean 'Plain'?"),
        ("my_protocols:Plain.Iner", {}, "my_protocols.Plain has no 'Iner': did you mean 'Inner'?"),
        ("my_protocols:Zzz", {}, "my_protocols has no 'Zzz'; its classes are"),
        ("my_protocols:Gone", {}, "cannot be imported: AttributeError"),
        ("no_such_module_here:X", {}, "cannot be imported: ModuleNotFoundError"),
        ("my_protocols:NoClass", {}, "is not a class with"),
        ("my_protocols:Abstract", {}, "is not a class with"),
        ("my_protocols:Mistyped", {}, "unknown attribute `need_logprobs`; did you mean `needs_logprobs`?"),
        ("my_protocols:Malformed", {}, "protocol 'my_protocols:Malformed': `roles` must be Sequence[str], not 'agent'"),
        ("my_protocols:Plain", {"x": 1}, "unknown setting 'x'. Known: none"),
        ("my_protocols:Configured", {"lout": 1}, "unknown setting 'lout': did you mean 'loud'?"),
    ],
)
def test_one_that_is_named_or_set_wrongly_is_refused(
    module: str, path: str, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make_protocol(path, settings)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
