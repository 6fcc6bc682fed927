"""A class of one's own that is named wrongly: the nearest one is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from moot.protocols.errors import ConfigError
from moot.protocols.registry import make_protocol

SOURCE = """
from moot import Verdict

class Countdown:
    class Inner:
        async def run(self, case, floor): ...

    async def run(self, case, floor): ...
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "mistyped_module.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mistyped_module", raising=False)
    return "mistyped_module"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Countdwn", "mistyped_module has no 'Countdwn': did you mean 'Countdown'?"),
        ("countdown", "did you mean 'Countdown'?"),
        ("Countdown.Iner", "mistyped_module.Countdown has no 'Iner': did you mean 'Inner'?"),
        ("Zzz", "mistyped_module has no 'Zzz'; its classes are Countdown"),
    ],
)
def test_a_mistyped_class_is_told_the_nearest_one(module: str, name: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_protocol(f"{module}:{name}")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    make_protocol(f"{module}:Countdown")
