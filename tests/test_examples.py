"""The examples in docstrings give what they show."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest
from places import ROOT

WITH_EXAMPLES = sorted(
    ".".join(("moot", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for folder in ("metrics", "protocols", "actors", "deploy")
    for path in (ROOT / folder).rglob("*.py")
    if ">>> " in path.read_text("utf-8")
)


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_of_a_module(module: str) -> None:
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
