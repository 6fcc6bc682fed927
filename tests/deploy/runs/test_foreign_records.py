"""A run.yaml from elsewhere: one clear error, never a hang."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.actors.models.prices import price_table
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.verify import verify
from moot.deploy.results.run_info import read_run_info
from moot.deploy.runs.flag_parsers import read_value
from moot.deploy.runs.prior_runs import recorded_members
from moot.deploy.runs.run_config import read_yaml
from moot.protocols.errors import ConfigError, RecordError

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "m0: &m0 {k0: 0}\n" + "".join(
    f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}], k{n}: 0}}\n" for n in range(1, 12)
)
ENDLESS = {
    "laughs": LAUGHS,
    "merges": MERGES,
    "a cycle": "a: &a [*a]\n",
    "brackets": "[" * 1_000_000,
    "braces": "{a: " * 1_000_000,
    "dashes": "- " * 1_000_000,
    "columns": "".join(f"{' ' * level}a:\n" for level in range(3_000)),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("content", ENDLESS.values(), ids=ENDLESS)
def test_yaml_aliases_that_expand_too_much_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(content)
    for read in (read_run_info, lambda path: read_run_yaml(RunFolder(path))):
        with pytest.raises(RecordError, match=r"run\.yaml"):
            read(tmp_path)
    with pytest.raises(ConfigError, match=r"run\.yaml"):
        read_yaml(tmp_path / "run.yaml")
    with pytest.raises(ConfigError, match=r"run\.yaml"):
        price_table(str(tmp_path / "run.yaml"))
    with pytest.raises(ConfigError, match="x=: the value is not valid YAML"):
        read_value(content, "x=")


@pytest.mark.parametrize("value", ["2024-13-45", "0b_"])
def test_invalid_dates_and_numbers_are_reported(value: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="x=: the value is not valid YAML"):
        read_value(value, "x=")
    file = tmp_path / "prices.yaml"
    file.write_text(f"as_of: {value}\n")
    with pytest.raises(ConfigError, match=r"prices\.yaml"):
        price_table(str(file))


def test_small_yaml_aliases_are_read(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "run.yaml").write_text("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}\n")
    assert read_run_yaml(RunFolder(tmp_path)) == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}


@pytest.mark.parametrize("version", ["99", "x", "0", "[]", "true"])
def test_a_schema_that_is_not_known_is_refused(version: str, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(f"schema_version: {version}\n")
    with pytest.raises(RecordError, match="schema_version"):
        read_run_info(tmp_path)
    assert any("schema_version" in fault for fault in verify(RunFolder(tmp_path)).faults)
    with pytest.raises(ConfigError, match="schema_version"):
        recorded_members(f"replay/{tmp_path}", "agent")
