"""`moot ablate --protocol ceda` over turns and pairs of debaters: the cells, their F1 and their seconds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from moot.actors.record.tables import read_table
from moot.deploy.cli.main import app
from moot.protocols.claims import CLAIM_LABELS

SURE = "simulated?competence=0.95"
PAIRS = [f"[{SURE},{SURE}]", "[simulated?competence=0.4,simulated]"]
CLAIMS = 16


Cells = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Cells]:
    """The folder of a grid of four cells, and by turns and pair the cell as JSON."""
    folder = tmp_path_factory.mktemp("grid") / "out"
    shown = ablate(folder, "--quiet", "--format", "json")
    assert shown.exit_code == 0, shown.output
    return folder, {tuple(cell["values"].values()): cell for cell in json.loads(shown.stdout)["cells"]}


def ablate(folder: Path, *more: str) -> Any:
    over = ["--over", "max_turns=2,4", "--over", f"role.debater={','.join(PAIRS)}"]
    given = ["--protocol", "ceda", "--task", "sample-claims", "--limit", str(CLAIMS), "--engine", "inline"]
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["ablate", *given, *over, "--out", str(folder), *more])


def verdicts(cell: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_table(Path(cell["run"]), "verdicts").to_pylist()
    return found


def macro_f1(rows: list[dict[str, Any]]) -> float:
    """Counted by hand."""
    each = []
    for label in CLAIM_LABELS:
        hits = sum(row["gold"] == row["answer"] == label for row in rows)
        each.append(2 * hits / (sum(r["gold"] == label for r in rows) + sum(r["answer"] == label for r in rows)))
    return fmean(each)


def test_every_cell_has_its_turns_its_pair_and_its_figures(grid: tuple[Path, Cells]) -> None:
    folder, cells = grid
    assert list(cells) == [(turns, pair) for turns in ("2", "4") for pair in PAIRS]
    for (turns, pair), cell in cells.items():
        rows = verdicts(cell)
        assert (cell["cases"], cell["failed"], len(rows)) == (CLAIMS, 0, CLAIMS)
        assert max(row["rounds"] for row in rows) <= int(turns)
        claims = cell["claims"]
        (verdict,) = [each for each in claims["detectors"] if each["by"] == "verdict"]
        assert claims["n"] == CLAIMS
        assert verdict["macro_f1"]["value"] == pytest.approx(macro_f1(rows))
        assert cell["seconds"]["mean"] == pytest.approx(fmean(row["wall_s"] for row in rows))
        written = yaml.safe_load((folder / cell["cell"] / "run.yaml").read_text())
        assert [member["model"] for member in written["bindings"]["debater"]] == pair.strip("[]").split(",")
    assert any(row["rounds"] > 2 for row in verdicts(cells["4", PAIRS[1]]))


def test_the_tables_say_f1_and_seconds_turns_by_pairs(grid: tuple[Path, Cells]) -> None:
    folder, cells = grid
    shown = ablate(folder, "--quiet", "--format", "md").output.replace("\\", "")
    (head,) = [line for line in shown.splitlines() if line.startswith("| max_turns | debater | macro F1, %")]
    assert "| s per case |" in head
    (table,) = [part for part in shown.split("\n\n") if part.startswith(f"| max_turns | {PAIRS[0]}")]
    rows = [[word.strip() for word in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == ["2", "4"]
    for row in rows:
        for pair, told in zip(PAIRS, row[1:], strict=True):
            assert told.startswith(f"{100 * macro_f1(verdicts(cells[row[0], pair])):.1f} (")
    text = " ".join(ablate(folder, "--quiet").output.split())
    assert "max_turns down, role.debater across" in text
    assert re.search(r"always supported \d+\.\d, always hallucinated \d+\.\d", text)
