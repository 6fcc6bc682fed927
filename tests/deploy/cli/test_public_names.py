"""`import moot` and what it offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import moot

HEAVY = ("ray", "openai", "anthropic", "torch", "pandas", "pyarrow", "numpy", "pydantic")


HELP = """
from moot.deploy.cli.main import main
sys.argv = ["moot", "--help"]
try:
    main()
except SystemExit:
    pass
"""


@pytest.mark.parametrize(("code", "heavy"), [("import moot\ndir(moot)", HEAVY), (HELP, HEAVY[:6])])
def test_what_is_asked_first_loads_nothing_heavy(code: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys\n{code}\nprint('loaded:', [m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "loaded: []" in done.stdout


@pytest.mark.parametrize("name", moot.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(moot, name) is not None
    assert name in dir(moot)


def test_other_names_are_not() -> None:
    assert isinstance(moot.__version__, str)
    with pytest.raises(AttributeError, match="nothing"):
        moot.nothing  # noqa: B018
