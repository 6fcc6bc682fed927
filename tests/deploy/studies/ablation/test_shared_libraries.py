"""Grids and comparisons: documents are read once, and embedded once per encoder, for all runs; `ablate` with documents
and a classifier."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from not_none import not_none
from openai_server import simulated_server, stats_of
from planted_records import Command
from summary_debate import card, write_classifier_folder

from moot.actors.record.tables import read_table
from moot.actors.retrieval.documents.docs import DocumentSet, open_documents
from moot.actors.retrieval.library import StoredLibrary
from moot.actors.retrieval.library_folder import LibraryFolder
from moot.deploy.results.record import read_events
from moot.deploy.runs import run_library
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.run_config import RunConfig

FACTS = "Cats make about 100 different sounds.\nDogs make only about 10 sounds.\nEels are fish."
OWN = "short_protocols:RetrievalProtocol"
GRID = ["--task", "subjects:q.txt", "--protocol", OWN, "--docs", "docs", "--quiet"]


@pytest.fixture
def moot(command: Command) -> Command:
    """Runs a command in this process, in a folder with documents and questions."""
    Path("docs").mkdir()
    Path("docs/facts.txt").write_text(FACTS)
    Path("q.txt").write_text("How many sounds do cats make?\nAre eels fish?\n")
    return lambda name, *arguments: command(name, "--engine", "inline", "--out", "out", *arguments)


@pytest.fixture
def times_read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows by one for each time that documents are read."""
    times: list[Any] = []

    def read(*named: Any) -> DocumentSet:
        times.append(named)
        return open_documents(*named)

    monkeypatch.setattr(run_library, "open_documents", read)
    return times


def embedded(port: int) -> int:
    return int(stats_of(port)["embedded_texts"])


def describe_cell(cell: str, out: str = "out") -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(Path(out, cell, "run.yaml").read_text())
    return content


def passages(cell: str) -> dict[str, Any]:
    rows = read_table(Path("out") / cell, "verdicts").to_pylist()
    return {row["case_id"]: json.loads(row["payload"]) for row in rows}


def test_a_grid_embeds_its_documents_once(moot: Command, times_read: list[Any]) -> None:
    with simulated_server(None) as port:
        encoder = f"http://127.0.0.1:{port}/v1#m"
        grid = [*GRID, "--encoder", encoder, "--over", "seed=1,2,3"]
        code, out, _ = moot("ablate", *grid, "--dry-run")
        assert code == 0
        assert out.count(f"3 texts to embed with {encoder}, once for all runs that share them") == 1
        assert (len(times_read), embedded(port), Path("out").exists()) == (1, 0, False)
        assert moot("ablate", *grid)[0] == 0
        assert len(times_read) == 2
        checks, questions, chunks = 4, 3 * 2, 3  # a check of all cells together, and one of each
        assert embedded(port) <= checks + questions + chunks
        (library,) = Path("out/library").iterdir()
        for cell in ("seed=1", "seed=2", "seed=3"):
            assert describe_cell(cell)["library"] == f"../library/{library.name}"
            assert describe_cell(cell)["docs_digest"] == StoredLibrary(library, encoder).note.digest
            assert not Path("out", cell, "library").exists()
            assert passages(cell) == passages("seed=1")
        before = embedded(port)
        assert moot("ablate", *grid)[0] == 0
        assert embedded(port) == before


def test_each_encoder_of_a_grid_has_its_library(moot: Command) -> None:
    with simulated_server(None) as port:
        assert moot("ablate", *GRID, "--over", f"encoder=hashed-ngrams,http://127.0.0.1:{port}/v1#m")[0] == 0
    kept = {LibraryFolder(each).manifest().encoder for each in Path("out/library").iterdir()}
    assert kept == {"hashed-ngrams-512-v1", f"http://127.0.0.1:{port}/v1#m"}


def test_a_cell_resumes_alone_with_the_library_of_its_grid(moot: Command) -> None:
    assert moot("ablate", *GRID, "--over", "seed=1,2", "--limit", "1")[0] == 0
    place = describe_cell("seed=2")["library"]
    alone = [*GRID, "--seed", "2", "--out", "out/seed=2"]
    assert moot("run", *alone)[0] == 0
    assert len(passages("seed=2")) == 2
    assert describe_cell("seed=2")["library"] == place
    assert not Path("out/seed=2/library").exists()
    Path("out").rename("moved")
    Path("docs").rename("elsewhere")
    config = RunConfig.build(Path("moved/seed=2/run.yaml"), {"out": "moved/seed=2"})
    again = prepare(config)
    assert again.library == Path("moved/library", Path(place).name).absolute()
    assert (not_none(again.docs).size, not_none(again.docs).digest) == (
        3,
        describe_cell("seed=2", "moved")["docs_digest"],
    )


def test_a_grid_of_ceda_reads_documents_and_asks_the_classifier(moot: Command) -> None:
    write_classifier_folder(Path("clf"), card())
    flags = ["--protocol", "ceda", "--task", "sample-claims", "--limit", "2", "--docs", "docs", "--classifier", "clf"]
    code, out, err = moot("ablate", *flags, "--over", "max_turns=1,2", "--quiet")
    assert code == 0, err
    assert "max_turns" in out
    for cell in ("max_turns=1", "max_turns=2"):
        assert describe_cell(cell)["classifier_digest"] == card().digest
        rulings, evidence = (read_events(Path("out") / cell, [kind]) for kind in ("ruling", "evidence"))
        assert len(rulings) == len(evidence) == 2
        assert all(0.0 <= each.data["classifier"]["p_hallucinated"] <= 1.0 for each in rulings)
        named = {item["document"] for each in evidence for item in each.data["items"]}
        assert "facts.txt" in named
    for protocol, over, given, why in (
        ("socrasynth", "max_rounds=2", ("--docs", "docs"), "--docs: protocol 'socrasynth' searches no documents"),
        ("selene", "agents=2", ("--classifier", "clf"), "protocol 'selene' uses no classifier"),
    ):
        code, _, err = moot("ablate", "--protocol", protocol, "--out", "other", *given, "--over", f"{over},3")
        assert (code, err.count("\n")) == (2, 1)
        assert f"cell {over}: {why}" in err
