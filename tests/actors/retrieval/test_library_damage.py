"""Libraries on a failing disk: any flipped bit and any cut gives equal passages or one clear error."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from counting_encoder import NAME, TEXTS, Counting, chunks_of_texts

from moot.actors.retrieval import build, library_folder
from moot.actors.retrieval.build import build_library
from moot.actors.retrieval.library import StoredLibrary
from moot.actors.retrieval.library_folder import LibraryFolder
from moot.actors.retrieval.verify import verify_library
from moot.protocols.errors import ConfigError, MootError, RecordError

FILES = ("library.json", "chunks.arrow", "vectors.f32", "vectors.crc32")
SHORT = TEXTS[:12]


@pytest.fixture(autouse=True)
def _small_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_BATCH", 5)
    for module in ("actors.retrieval.build", "actors.record.files"):
        monkeypatch.setattr(f"moot.{module}.os.fsync", lambda _: None)


def built(folder: Path, encoder: Counting | None = None) -> Counting:
    encoder = encoder or Counting()
    asyncio.run(build_library(folder, chunks_of_texts(SHORT), encoder))
    return encoder


def half_built(folder: Path) -> Path:
    with pytest.raises(MootError, match="on purpose"):
        built(folder, Counting(fails_after=10))
    return folder


def content_of(folder: Path) -> tuple[bytes, list[str]]:
    """Vectors and texts that a search would use."""
    library = StoredLibrary(folder, NAME)
    vectors = library._searching._vectors
    assert vectors is not None
    return vectors.tobytes(), [library._chunks[place].text for place in range(len(library))]


def damages(content: bytes) -> Iterator[bytes]:
    """The content with a bit of some bytes flipped, and cut in some places."""
    for at in range(0, len(content), 1 + len(content) // 100):
        yield content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]
    for at in range(0, len(content), 1 + len(content) // 13):
        yield content[:at]


def damaged_copies(folder: Path) -> Iterator[tuple[Path, str]]:
    contents = {name: (folder / name).read_bytes() for name in FILES}
    for name, content in contents.items():
        for damaged in damages(content):
            for each, of_each in contents.items():
                (folder / each).write_bytes(damaged if each == name else of_each)
            library_folder._VERIFIED.clear()  # a file's time may be too coarse for a test
            yield folder, name


def test_a_damaged_library_gives_equal_passages_or_an_error(tmp_path: Path) -> None:
    built(tmp_path / "library")
    whole = content_of(tmp_path / "library")
    for folder, name in damaged_copies(tmp_path / "library"):
        faults = verify_library(folder).faults
        error = ""
        try:
            assert content_of(folder) == whole, name
        except (ConfigError, RecordError) as raised:
            error = str(raised)
        assert bool(faults) == bool(error) or "not finished" in error, name
        assert str(folder) in (error or str(folder))


def test_a_damaged_build_resumes_and_pays_for_what_is_damaged_only(tmp_path: Path) -> None:
    built(tmp_path / "whole")
    whole = content_of(tmp_path / "whole")
    asked: dict[str, set[int]] = {name: set() for name in FILES}
    for folder, name in damaged_copies(half_built(tmp_path / "library")):
        if "library.json" in "".join(verify_library(folder).faults):
            with pytest.raises(ConfigError, match=r"library\.json"):
                built(folder)
            continue
        asked[name].add(len(built(folder).asked))
        assert content_of(folder) == whole, name
        assert verify_library(folder).faults == []
    assert asked["library.json"] <= {2} == asked["chunks.arrow"]
    for name in ("vectors.f32", "vectors.crc32"):
        assert {3, 12} < asked[name] <= set(range(3, 13))


def test_a_damaged_library_is_repaired_by_building_it_again(tmp_path: Path) -> None:
    built(tmp_path)
    whole = content_of(tmp_path)
    for name, at, asked in (("vectors.f32", 5 * 64, SHORT[5:6]), ("chunks.arrow", 500, [])):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(RecordError, match=rf"{name} is damaged.*Build it again"):
            content_of(tmp_path)
        assert built(tmp_path).asked == asked
        assert content_of(tmp_path) == whole


@pytest.mark.parametrize("finished", [True, False])
def test_a_library_of_an_earlier_version_is_read_and_resumed(tmp_path: Path, finished: bool) -> None:
    built(tmp_path / "whole")
    whole, folder = content_of(tmp_path / "whole"), tmp_path / "library"
    if finished:
        shutil.copytree(tmp_path / "whole", folder)
    else:
        half_built(folder)
    files = LibraryFolder(folder)
    files.note_file.write_bytes(msgspec.json.encode(msgspec.structs.replace(files.manifest(), chunks_crc32=None)))
    files.checksums_file.unlink()
    report = verify_library(folder)
    assert (report.faults, report.files, report.unchecked) == ([], 0, 2)
    if finished:
        assert content_of(folder) == whole
        changed = files.chunks_file.read_bytes().replace(b"number 1", b"number 2", 1)
        files.chunks_file.write_bytes(changed)
        assert "other chunks" in verify_library(folder).faults[0]
    assert built(folder).asked == ([] if finished else SHORT[10:])
    assert content_of(folder) == whole
    assert verify_library(folder).unchecked == 0
