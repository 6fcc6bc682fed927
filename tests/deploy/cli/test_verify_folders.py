"""`moot verify` of more than a run: a server's folder with its accepted requests, and libraries of documents."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from planted_records import Command
from server_client import CASE, served
from short_protocols import RetrievalProtocol

import moot
from moot.actors.retrieval.library_folder import LibraryFolder
from moot.deploy.service.inbox_store import InboxStore, WantedChange
from moot.deploy.service.request_queue import Key


def flip(file: Path, wanted: bytes = b"") -> None:
    content = bytearray(file.read_bytes())
    content[content.index(wanted) if wanted else len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """Folder of a server with one recorded debate and one pending request."""

    async def serve() -> None:
        async with served(tmp_path / "server") as client:
            await client.post("/v1/debates?wait_s=60", {**CASE, "id": "one"})

    asyncio.run(serve())
    store = InboxStore(tmp_path / "server" / "inbox")
    store.commit([WantedChange("accept", Key("debates", "two"), b'{"question": "is it?"}')])
    store.close()
    return tmp_path / "server"


def test_a_server_is_verified_with_its_requests_and_its_runs(command: Command, server: Path) -> None:
    code, out, _ = command("verify", str(server))
    assert (code, out.count(": whole\n")) == (0, 2)
    assert "pending 1, cancelled 0, lost 0" in out
    flip(server / "inbox" / "requests.log", b"is it")
    code, out, _ = command("verify", str(server))
    assert (code, out.count(": whole\n")) == (2, 1)
    assert "debates/two is lost" in out
    InboxStore(server / "inbox").close()
    code, out, _ = command("verify", str(server))
    assert (code, "lost earlier, and to be sent again: debates/two" in out) == (0, True)
    (verdicts,) = (server / "debates" / "verdicts").glob("*.parquet")
    flip(verdicts)
    code, out, _ = command("verify", str(server))
    assert (code, str(verdicts) in out) == (2, True)


def test_what_cannot_be_read_of_a_server_leaves_the_rest_verified(command: Command, server: Path) -> None:
    shutil.copytree(server / "debates", server / "checks")
    (server / "checks" / "run.yaml").unlink()
    flip(server / "inbox" / "requests.log", b"is it")
    code, out, _ = command("verify", str(server))
    assert (code, out.count(": damaged\n"), out.count(": whole\n")) == (2, 2, 1)
    assert "debates/two is lost" in out
    (server / "inbox" / "requests.log").unlink()
    (server / "inbox" / "requests.log").mkdir()
    code, out, _ = command("verify", str(server))
    assert (code, out.count(": damaged\n"), out.count(": whole\n")) == (2, 2, 1)
    assert "requests.log is not a file" in out


def test_a_run_is_verified_with_its_library(command: Command, tmp_path: Path) -> None:
    (tmp_path / "facts.txt").write_text("Cats make about 100 different sounds.\nDogs make only about 10.")
    case = {"id": "sounds", "question": "How many sounds do cats make?"}
    options: dict[str, Any] = {
        "task": [case],
        "protocol": RetrievalProtocol(),
        "engine": "inline",
        "docs": tmp_path / "facts.txt",
    }
    moot.run(out=tmp_path / "run", **options)
    library = tmp_path / "run" / "library"
    assert command("verify", str(tmp_path / "run"))[0] == command("verify", str(library))[0] == 0
    flip(LibraryFolder(library).vectors_file)
    for folder in (tmp_path / "run", library):
        code, out, _ = command("verify", str(folder))
        assert (code, "vectors.f32 is damaged: 1 of 2 vectors" in out) == (2, True)
        assert "moot.index(" in out

    async def repair() -> None:
        await (await moot.index(tmp_path / "facts.txt", out=library)).close()

    asyncio.run(repair())
    assert command("verify", str(tmp_path / "run"))[0] == 0
    (library / "vectors.crc32").unlink()
    code, out, _ = command("verify", str(library))
    assert (code, "checksums of 0 of 2 vectors" in out) == (2, True)
    (library / "library.json").unlink()
    code, out, _ = command("verify", str(tmp_path / "run"))
    assert (code, "library.json" in out) == (2, True)


def test_a_configuration_is_no_run(command: Command, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("protocol: selene\nlimit: 3\n")
    for words in (["verify"], ["show"], ["report"], ["run", "--engine", "inline", "--limit", "1", "--reuse"]):
        code, out, err = command(*words, str(tmp_path))
        assert (code, "its run.yaml is a configuration" in out + err) == (2, True), words
