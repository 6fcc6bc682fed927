"""Runs that search documents: read, built into the run's folder, resumed, refused; and `moot.index`."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_pdfs import made_pdf
from openai_server import simulated_server, stats_of
from short_protocols import RetrievalProtocol

import moot
from moot.actors.models.retry import RetryPolicy
from moot.actors.retrieval import build
from moot.actors.retrieval.library import StoredLibrary
from moot.deploy.cli.multi_protocol import configs_by_protocol
from moot.deploy.cli.protocol_runs import execute
from moot.deploy.runs import run_library
from moot.deploy.runs.dry_run import plan
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.run import Run, prepare_from, run
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.session import Session
from moot.protocols.errors import ConfigError, ModelUnavailable, RunMismatch

FACTS = """Cats make about 100 different sounds.
Dogs make only about 10 sounds.
A cat can jump up to five times its height."""
FISH = ["Fish swim.", "Eels are fish that look like snakes."]
CASES = [
    {"id": "sounds", "question": "How many sounds do cats make?"},
    {"id": "jump", "question": "How high can a cat jump?"},
]
OWN = "short_protocols:RetrievalProtocol"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of two texts, which no process of their own has to read."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "facts.txt").write_text(FACTS)
    (folder / "fish.txt").write_text("\n".join(FISH))
    return folder


def options(out: Path, **more: Any) -> dict[str, Any]:
    return {"task": CASES, "protocol": RetrievalProtocol(), "engine": "inline", "out": out, **more}


def found(done: Run) -> dict[str, Any]:
    rows = done.table("verdicts").to_pylist()
    return {row["case_id"]: json.loads(row["payload"])["passages"] for row in rows}


def embedded(port: int) -> int:
    return int(stats_of(port)["embedded_texts"])


def test_a_run_finds_passages_of_its_documents(tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(folder: str, encoder: str) -> StoredLibrary:
        assert asyncio._get_running_loop() is None, "it reads the whole library"
        return StoredLibrary(folder, encoder)

    monkeypatch.setattr("moot.actors.debate.context_factory.StoredLibrary", opened)
    (docs / "fish.txt").unlink()
    (docs / "fish.pdf").write_bytes(made_pdf(FISH))
    done = run(**options(tmp_path / "run", docs=docs))
    assert (done.status, done.failed) == ("finished", 0)
    passages = found(done)
    assert passages["sounds"][0][:4] == ["facts.txt", 0, None, "Cats make about 100 different sounds."]
    assert passages["jump"][0][:2] == ["facts.txt", 2]
    assert {each[2] for case in passages.values() for each in case if each[0] == "fish.pdf"} <= {1, 2}
    content = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())
    assert content["docs"] == [str(docs)]
    assert content["docs_digest"] == StoredLibrary(tmp_path / "run" / "library", "hashed-ngrams-512-v1").note.digest


def test_a_run_resumes_with_its_documents_only(tmp_path: Path, docs: Path) -> None:
    done = run(**options(tmp_path / "run", docs=docs, limit=1))
    library = tmp_path / "run" / "library" / "vectors.f32"
    before = library.stat().st_mtime_ns
    moved = docs.rename(tmp_path / "elsewhere")
    assert run(**options(done.path, docs=moved)).done == 2
    assert library.stat().st_mtime_ns == before, "what is built is not built again"
    (moved / "facts.txt").write_text(FACTS.replace("100", "200"))
    with pytest.raises(RunMismatch, match="docs_digest"):
        run(**options(done.path, docs=moved))
    with pytest.raises(RunMismatch, match=r"docs: was .*, now none"):
        run(**options(done.path))


def test_a_run_resumes_from_its_library_without_its_documents(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fish = docs / "fish.txt"
    both = [docs / "facts.txt", fish]
    wanted = options(tmp_path / "run", docs=both)
    first = run(**options(tmp_path / "run", docs=both, limit=1))
    kept = fish.rename(tmp_path / "fish.txt")
    with monkeypatch.context() as patched:
        patched.setattr(run_library, "open_documents", lambda named, encoder: pytest.fail("documents were read"))
        done = run(**wanted)
    assert (done.done, done.failed) == (2, 0)
    assert {each[0] for case in found(done).values() for each in case} == {"facts.txt", "fish.txt"}
    assert yaml.safe_load((first.path / "run.yaml").read_text())["library"] == "library"
    assert run(**wanted).worked is False
    with pytest.raises(ConfigError, match="no such file"):
        run(**options(first.path, docs=[fish]))
    with pytest.raises(ConfigError, match="no such file"):
        run(**options(first.path, docs=both, encoder="http://127.0.0.1:9/v1#m"))
    vectors = first.path / "library" / "vectors.f32"
    whole = vectors.read_bytes()
    vectors.write_bytes(whole[:-2048])
    with pytest.raises(ConfigError, match="no such file"):
        run(**wanted)
    vectors.write_bytes(whole)
    kept.rename(fish)
    fish.write_text("Fish fly.")
    with pytest.raises(RunMismatch, match="docs_digest"):
        run(**wanted)


def test_a_library_is_opened_and_not_built_again(tmp_path: Path, docs: Path) -> None:
    first = run(**options(tmp_path / "first", docs=docs))
    second = run(**options(tmp_path / "second", docs=first.path / "library"))
    assert found(second) == found(first)
    assert not (second.path / "library").exists()
    with pytest.raises(ConfigError, match="hashed-ngrams-512-v1, not http"):
        run(**options(tmp_path / "third", docs=first.path / "library", encoder="http://127.0.0.1:9/v1#m"))
    with pytest.raises(ConfigError, match="alone"):
        run(**options(tmp_path / "third", docs=[first.path / "library", docs]))


def test_documents_go_with_protocols_that_search_them(tmp_path: Path, docs: Path) -> None:
    with pytest.raises(ConfigError, match=r"--docs: .*socrasynth"):
        run(task="sample", protocol="socrasynth", engine="inline", docs=docs, out=tmp_path / "run")
    config = RunConfig(protocol=f"{OWN},socrasynth", docs=(str(docs),))
    assert [each.docs for each in configs_by_protocol(config, [OWN, "socrasynth"])] == [(str(docs),), ()]
    with pytest.raises(ConfigError, match="documents"):
        configs_by_protocol(RunConfig(docs=(str(docs),)), ["socrasynth", "judge-panel"])


def test_a_dry_run_counts_what_will_be_embedded(tmp_path: Path, docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cases.txt").write_text("Cats?\n")
    flags: dict[str, Any] = {"task": f"subjects:{tmp_path / 'cases.txt'}", "protocol": OWN}
    flags |= {"docs": [str(docs)], "out": str(tmp_path / "r")}
    assert execute(None, flags, dry_run=True) == 0
    assert "documents 2 in 5 chunks\n" in capsys.readouterr().out
    served = {**flags, "encoder": "http://127.0.0.1:9/v1#m"}
    (docs / "copy.txt").write_text(FACTS)
    assert plan(prepare(RunConfig.build(None, served))).documents.startswith("3 in 8 chunks, 5 texts")
    assert not (tmp_path / "r").exists()


def test_a_failed_build_resumes_with_the_same_command(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_BATCH", 2)
    (docs / "more.txt").write_text("\n".join(f"Fact number {n} is this." for n in range(20)))
    appended = build._Build._append

    def failing(self: Any, places: Any, new: Any) -> None:
        if places[0] >= 6:
            raise OSError(28, "No space left on device")
        appended(self, places, new)

    with simulated_server(None) as port:
        wanted = options(tmp_path / "run", docs=docs, encoder=f"http://127.0.0.1:{port}/v1#m")
        with monkeypatch.context() as patched:
            patched.setattr(build._Build, "_append", failing)
            with pytest.raises(moot.MootError, match="No space left on device"):
                run(**wanted)
        paid = embedded(port)
        left = plan(prepare_from(None, wanted)).documents
        assert left.startswith("3 in 25 chunks, 19 texts to embed")
        done = run(**wanted)
        checks = 2  # one short text at the start of each session
        assert embedded(port) <= paid + 19 + len(CASES) + checks
    assert done.done == 2


def test_ctrl_c_while_documents_are_embedded_leaves_a_run_that_resumes(tmp_path: Path, docs: Path) -> None:
    (docs / "more.txt").write_text("\n".join(f"Fact number {n} is this." for n in range(600)))
    with simulated_server(None, latency_ms=50) as port:
        wanted = options(tmp_path / "run", docs=docs, encoder=f"http://127.0.0.1:{port}/v1#m")
        prepared = prepare_from(None, wanted)
        session = Session(prepared)

        async def stopped_soon() -> Run:
            holding = asyncio.create_task(session.run())
            while not (tmp_path / "run" / "library" / "library.json").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            session.stop()
            return await holding

        done = asyncio.run(stopped_soon())
        assert (done.status, done.done) == ("interrupted", 0)
        assert (tmp_path / "run" / "library" / "chunks.arrow").exists()
        assert run(**wanted).status == "finished"


def test_an_encoder_that_fails_while_building_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.retrieval.documents.library.RetryPolicy", partial(RetryPolicy, base_s=0.0))

    async def failing() -> None:
        with simulated_server(None, fail_rate=1.0) as port:
            await moot.index({"cats": "Cats sleep."}, encoder=f"http://127.0.0.1:{port}/v1#m")

    with pytest.raises(ModelUnavailable, match="HTTP 500") as told:
        asyncio.run(failing())
    assert "\n" not in str(told.value)


async def test_an_index_is_searched_and_given_to_a_run(tmp_path: Path, docs: Path) -> None:
    async with await moot.index([docs], out=tmp_path / "library") as library:
        assert len(library) == 5
        (first, *_) = await library.search("How many sounds do cats make?", n=2)
        assert (first.document, first.chunk) == ("facts.txt", 0)
        done = await moot.arun(**options(tmp_path / "run", docs=library))
    assert found(done)["sounds"][0][4] == first.similarity
    async with await moot.index(tmp_path / "library") as again:
        assert await again.search("How many sounds do cats make?", n=2) == [first, *_]
    with pytest.raises(ConfigError, match="already"):
        await moot.index(tmp_path / "library", out=tmp_path / "other")
    with pytest.raises(ConfigError, match="other documents"):
        await moot.index({"cats": "Cats."}, out=tmp_path / "library")


@pytest.mark.parametrize("named", [True, False])
async def test_an_index_that_is_cancelled_is_built_on_where_it_was_named_and_leaves_nothing_else(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, may_write, append = threading.Event(), threading.Event(), build._Build._append

    def slow(self: Any, places: Any, new: Any) -> None:
        writing.set()
        may_write.wait(30.0)
        append(self, places, new)

    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    with monkeypatch.context() as patched:
        patched.setattr(build._Build, "_append", slow)
        out = tmp_path / "library" if named else None
        indexing = asyncio.create_task(moot.index({"cats": "Cats sleep."}, out=out))
        await asyncio.to_thread(writing.wait, 30.0)
        indexing.cancel()
        assert not (await asyncio.wait([indexing], timeout=0.05))[0], "a batch is written to its end"
        may_write.set()
        with pytest.raises(asyncio.CancelledError):
            await indexing
    assert list((tmp_path / "scratch").iterdir()) == []
    async with await moot.index({"cats": "Cats sleep."}, out=out) as library:
        assert [each.document for each in await library.search("cats")] == ["cats"]


async def test_an_index_without_a_folder_leaves_nothing(docs: Path) -> None:
    library = await moot.index({"cats": "Cats sleep. They purr.", "dogs": "Dogs bark."})
    assert library.path.is_dir()
    assert [each.document for each in await library.search("dogs", n=9)] == ["dogs", "cats"]
    await library.close()
    assert not library.path.exists()
    nothing: dict[str, str] = {}
    for wrong in (nothing, {"cats": ""}):
        with pytest.raises(ConfigError):
            await moot.index(wrong)
