"""`import moot` and what it offers."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

import moot

HEAVY = ("ray", "openai", "anthropic", "torch", "pandas", "pyarrow", "numpy", "pydantic")


def test_importing_moot_is_quick_and_loads_nothing_heavy() -> None:
    code = f"import sys, json, moot; dir(moot); print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    best = 10.0
    for _ in range(3):
        started = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        best = min(best, time.perf_counter() - started)
        assert json.loads(done.stdout) == []
    assert best < 1.0


def test_the_help_loads_neither_ray_nor_the_vendors() -> None:
    code = (
        "import sys\nfrom moot.deploy.cli.main import main\nsys.argv = ['moot', '--help']\n"
        f"try: main()\nexcept SystemExit: print('loaded:', [m for m in {HEAVY[:6]!r} if m in sys.modules])"
    )
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
