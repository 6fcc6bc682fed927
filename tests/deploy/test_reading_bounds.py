"""Reading a document takes no more time, memory or text than it may, whatever it holds; and links are followed where a
user can have meant that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_pdfs import made_pdf

from moot.deploy.documents import pdf, reader, reading
from moot.deploy.documents.docs import read_documents
from moot.deploy.documents.reading import Reading
from moot.protocols.errors import ConfigError


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as found:
        read_documents([str(path)])
    said = str(found.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tags.html", b"<a " * 40_000),
        ("pages.pdf", made_pdf(["a\n" * 50_000] * 100)),
    ],
)
def test_a_small_file_that_would_take_minutes_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    # On top of what the start took, which is rounded up.
    monkeypatch.setattr(reading, "most_seconds", lambda size_bytes: 0)
    (tmp_path / name).write_bytes(content)
    said = refused(tmp_path / name)
    assert said.startswith(f"document {name!r}: ")
    assert "0 s of computing" in said


def test_a_file_that_would_fill_the_memory_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_MEMORY_BYTES", 2**27)
    (tmp_path / "wide.html").write_bytes(b"<a" + b" x=y" * 300_000 + b">Eels.")
    assert refused(tmp_path / "wide.html").startswith("document 'wide.html': it needs more memory")
    (tmp_path / "wide.html").write_bytes(b"<a x=y>Eels.")
    assert read_documents([str(tmp_path)])[0].pages == ("Eels.",)


def test_a_pdf_may_have_so_many_pages_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = ["Cats sleep.", "Dogs bark.", "Eels swim."]
    monkeypatch.setattr(pdf, "MOST_PAGES", 2)
    assert reader.reply_to(".pdf", made_pdf(pages[:2])).pages == tuple(pages[:2])
    assert "2 pages" in reader.reply_to(".pdf", made_pdf(pages)).refused
    monkeypatch.setattr(pdf, "MOST_PAGES", 3)
    monkeypatch.setattr(pdf, "MOST_CHARACTERS", 30)
    assert "30 characters" in reader.reply_to(".pdf", made_pdf(pages)).refused


def test_a_text_may_be_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_CHARACTERS", 10)
    assert reader.reply_to(".html", b"<p>Eels swim.").pages == ("Eels swim.",)
    assert "10 characters" in reader.reply_to(".html", b"<p>Cats sleep.").refused


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (AssertionError("a line\nand another"), "AssertionError"),
        (MemoryError(), "more memory"),
        (SystemError("error return without exception set"), "more memory"),
    ],
)
def test_whatever_a_parser_raises_is_one_line(monkeypatch: pytest.MonkeyPatch, raised: Exception, told: str) -> None:
    def failing(kind: str, raw: bytes) -> tuple[str, ...]:
        raise raised

    monkeypatch.setattr(reader, "_pages", failing)
    said = reader.reply_to(".pdf", b"x").refused
    assert told in said
    assert "\n" not in said


def test_one_process_reads_all_documents_and_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = reading._started

    def counted() -> subprocess.Popen[bytes]:
        started.append(start())
        return started[-1]

    monkeypatch.setattr(reading, "_started", counted)
    with Reading() as read:
        assert read.pages(".html", b"<p>Cats sleep.") == ("Cats sleep.",)
        assert read.pages(".md", b"*Eels* and fish") == ("Eels and fish",)
        assert read.pages(".pdf", made_pdf(["Dogs", "bark."])) == ("Dogs", "bark.")
        with pytest.raises(ConfigError, match="broken"):
            read.pages(".pdf", b"not one")
        assert read.pages(".html", b"<p>They purr.") == ("They purr.",)
    assert len(started) == 1
    assert started[0].returncode is not None


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit(3)", "exit code 3"),
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("import sys; read = sys.stdin.buffer; read.readline(); read.read(2**20); print('[]')", "gave no text"),
    ],
)
def test_a_reader_that_breaks_is_one_line(monkeypatch: pytest.MonkeyPatch, script: str, said: str) -> None:
    pipe = subprocess.PIPE

    def broken() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    monkeypatch.setattr(reading, "_started", broken)
    with Reading() as read, pytest.raises(ConfigError, match=said):
        read.pages(".pdf", b"x" * 2**20)


def test_links_out_of_a_folder_are_passed_over_and_others_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("The password.")
    docs = tmp_path / "docs"
    (docs / "sub").mkdir(parents=True)
    (docs / "out.txt").symlink_to(tmp_path / "secret.txt")
    assert "links that lead out" in refused(docs)
    (docs / "sub" / "object").write_text("Cats sleep.")
    (tmp_path / "named.html").symlink_to(docs / "sub" / "object")
    assert read_documents([str(tmp_path / "named.html")])[0].name == "named.html"
    (docs / "in.txt").symlink_to(docs / "sub" / "object")
    (tmp_path / "linked").symlink_to(docs)
    for folder in (docs, tmp_path / "linked"):
        assert [(each.name, each.pages) for each in read_documents([str(folder)])] == [("in.txt", ("Cats sleep.",))]


def test_a_pipe_is_no_document(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert "pipe" in refused(tmp_path / "pipe.txt").partition("pipe.txt")[2]
