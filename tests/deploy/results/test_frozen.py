"""What every door to results says of recorded runs is what it said before. `frozen/README.md` says what they are.

`FREEZE=1 python -m pytest -n0 tests/deploy/results/test_frozen.py` writes what they say now.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from frozen_results import chosen_case, of_case, of_command, of_grid, of_run, of_runs, served
from planted_records import Command

FROZEN = Path(__file__).parent / "frozen"
EARLIER = Path(__file__).parents[1] / "runs" / "earlier_records" / "records.tar.xz"
DOORS: dict[str, str | None] = yaml.safe_load((FROZEN / "doors.yaml").read_text("utf-8"))
SEVERAL = [Path("several") / protocol for protocol in ("single-agent", "majority-vote", "selene")]
OVER = ("gate.when=selective,never", "agents=2,3")

PAGES = "view"
"""Line of a run of which the page of its report and what `moot view` serves are asked for, too."""

_DOOR = re.compile(r"(?m)^#### moot (.*)\n")
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All records, unpacked once, and the files that commands read."""
    folder = tmp_path_factory.mktemp("frozen")
    shutil.copytree(FROZEN / "inputs", folder, dirs_exist_ok=True)
    for archive in FROZEN.glob("records/*.tar.xz"):
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
    with tarfile.open(EARLIER) as file:
        file.extractall(folder / "earlier", filter="data")
    return folder


@pytest.fixture
def in_records(records: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Commands in the folder of the records, on a terminal of one width; nothing is drawn by matplotlib."""
    monkeypatch.chdir(records)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setenv("COLUMNS", "100")
    return command


def expect(name: str, said: Iterable[tuple[str, str]]) -> None:
    """Assert that each door says what it said, or write what it says."""
    file = FROZEN / "said" / f"{name.replace('/', '~')}.txt"
    if os.environ.get("FREEZE"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"#### moot {door}\n{text}\n" for door, text in said), "utf-8")
        return
    _, *parts = _DOOR.split(file.read_text("utf-8"))
    before = dict(zip(parts[::2], parts[1::2], strict=True))
    for door, text in said:
        was, now = before.pop(door), f"{text}\n"
        assert now == was or _is_near(now, was), f"{name}: moot {door}"
    assert not before, "doors that were not asked"


def _is_near(now: str, was: str) -> bool:
    """Whether texts differ in the rounding of numbers alone: p-values depend on the processor in the 7th digit."""
    words, numbers = [_NUMBER.split(text) for text in (now, was)], [_NUMBER.findall(text) for text in (now, was)]
    pairs = zip(*numbers, strict=False)
    return words[0] == words[1] and all(math.isclose(float(a), float(b), rel_tol=1e-5) for a, b in pairs)


@pytest.mark.parametrize("name", DOORS)
def test_a_run(name: str, in_records: Command) -> None:
    run = Path(name)
    case = chosen_case(run)
    lines = (DOORS[name] or "").splitlines()

    def said() -> Iterable[tuple[str, str]]:
        yield from of_run(run, page=PAGES in lines)
        if case is not None:
            yield from of_case(run, case)
        for line in lines:
            yield from served(run, case) if line == PAGES else of_command(in_records, line.format(run=run, case=case))

    expect(name, said())


def test_several_runs(in_records: Command) -> None:
    expect("several", of_runs(*SEVERAL))


def test_a_grid(in_records: Command) -> None:
    expect("grid", of_grid(Path("grid"), OVER))
