"""Reading documents: what each kind says, what they are called, and one line for what cannot be read.

Reading takes no more time, memory or text than it may, and follows links only where a user can have meant that.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_pdfs import made_pdf

from moot.actors.retrieval.documents import docs, parser_client, parser_process, pdf
from moot.actors.retrieval.documents.docs import (
    SourceDocument,
    chunk_documents,
    documents_from_texts,
    open_documents,
    read_documents,
)
from moot.actors.retrieval.documents.parser_client import DocumentParser, read_plain_text
from moot.actors.retrieval.documents.pdf import read_pdf
from moot.actors.retrieval.documents.web_page import html_to_text, read_markdown, read_web_page
from moot.protocols.errors import ConfigError

PAGE = """<!DOCTYPE html><html><head><title>unseen</title><style>p {color: red}</style></head><body>
<script>alert("unseen")</script><h1>Why <em>cats</em>?</h1><!-- unseen --><p>Cats sleep&nbsp;&mdash; a
lot.<br>They &lt;purr&gt;.</p><ul><li>Milk<li><p>Fish</p></ul><noscript>unseen</noscript>
<table><tr><th>pet<th>lives</tr><tr><td>cat<td>9</tr></table><img src=x alt="a tabby"></body></html>"""

MARKDOWN = """---
title: unseen
---
# Why cats?

Cats *sleep* [a lot](http://unseen.example).
They **purr**.

1. Milk
2. Fish

| pet | lives |
|-----|-------|
| cat | 9     |

<script>unseen()</script>
"""


def written(folder: Path, **files: str | bytes) -> Path:
    """A folder with files; two underscores stand for a point, three for a slash."""
    for name, content in files.items():
        path = folder / name.replace("___", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def names(*named: Path) -> list[str]:
    return [document.name for document in read_documents([str(path) for path in named])]


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as found:
        read_documents([str(path)])
    said = str(found.value)
    assert "\n" not in said
    return said


def test_html_is_read_without_what_nobody_sees() -> None:
    text = read_web_page(PAGE.encode())
    assert "unseen" not in text
    assert text.split("\n\n") == [
        "# Why cats?",
        "Cats sleep — a lot.\nThey <purr>.",
        "- Milk\n- Fish",
        "- pet | lives",
        "- cat | 9",
        "a tabby",
    ]


def test_html_in_another_encoding_is_read_as_it_declares() -> None:
    page = "<meta charset=iso-8859-2><p>Zażółć gęślą jaźń.</p>"
    assert read_web_page(page.encode("iso-8859-2")) == "Zażółć gęślą jaźń."
    assert read_web_page("<p>caf\u00e9 \u201cnoir\u201d</p>".encode("cp1252")) == "café “noir”"
    assert read_web_page("<meta charset=nonsense><p>caf\u00e9".encode("cp1252")) == "café"


def test_html_nested_without_end_is_read() -> None:
    assert html_to_text("<div><b>" * 5000 + "deep") == "deep"
    assert html_to_text("<?xml version='1.0'?><p>notes.txt") == "notes.txt"


@given(st.text(alphabet=st.sampled_from("<>/ap&;#x1!-= \n'\""), max_size=60))
def test_any_markup_is_read(markup: str) -> None:
    html_to_text(markup)


def test_markdown_is_read_without_its_marks() -> None:
    text = read_markdown(MARKDOWN.encode())
    assert "unseen" not in text
    document = SourceDocument("why.md", (text,))
    found = [chunk.text for chunk in chunk_documents([document])]
    assert found == ["Why cats?\nCats sleep a lot. They purr.", "Milk", "Fish", "pet | lives", "cat | 9"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_plain_text_is_read_in_its_encoding(encoding: str) -> None:
    assert read_plain_text("“Café” naïve".encode(encoding)) == "“Café” naïve"


def test_a_pdf_is_read_page_by_page() -> None:
    assert read_pdf(made_pdf(["Cats sleep a lot.", "", "Dogs\nbark."])) == ("Cats sleep a lot.", "", "Dogs\nbark.")
    assert read_pdf(made_pdf(["Cats."], password="secret", owner_only=True)) == ("Cats.",), "kept from changes only"


def test_pages_keep_their_numbers(tmp_path: Path) -> None:
    pages = [f"Page {number} says\n{'this and ' * 40}that." for number in range(1, 13)]
    (tmp_path / "long.pdf").write_bytes(made_pdf(pages))
    found = open_documents([str(tmp_path)], "hashed-ngrams-512-v1")
    assert (found.documents, found.size) == (1, 12)
    assert [(each.page, each.chunk) for each in found.chunks] == [(number + 1, number) for number in range(12)]
    assert all(each.text.startswith(f"Page {each.page} says this and this") for each in found.chunks)


def test_a_sentence_over_a_page_break_is_on_the_page_on_which_it_begins() -> None:
    document = SourceDocument("long.pdf", ("Cats sleep. They hunt", "", "at dawn.", "Dogs bark."), paged=True)
    found = [(chunk.page, chunk.text) for chunk in chunk_documents([document])]
    assert found == [(1, "Cats sleep. They hunt"), (3, "at dawn."), (4, "Dogs bark.")]
    without = SourceDocument("long.pdf", ("Cats sleep. They hunt", "at dawn.", "Dogs bark."), paged=True)
    assert [(chunk.page, chunk.text) for chunk in chunk_documents([without])] == [
        (1, "Cats sleep. They hunt at dawn."),
        (3, "Dogs bark."),
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("secret.pdf", made_pdf(["Cats."], password="x"), "encrypted"),
        ("scan.pdf", made_pdf(["", ""]), "scanned"),
        ("not.pdf", b"just text", "broken"),
        ("empty.txt", b" \n", "is empty"),
        ("void.html", b"<script>x</script>", "no text"),
        ("binary.txt", b"\x00\x01\x02", "expected text"),
        ("torn.txt", b"\xff\xfea", "UTF-16"),
        ("large.txt", b"a" * 2001, "larger than"),
        ("word.docx", b"x", "'.docx'"),
        ("README", b"x", "without a kind"),
    ],
)
def test_an_unreadable_document_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, said: str
) -> None:
    monkeypatch.setattr(docs, "MOST_BYTES", 2000)
    (tmp_path / name).write_bytes(content)
    line = refused(tmp_path / name)
    assert said in line
    assert name in line


def test_folders_and_files_that_are_not_there_or_closed(tmp_path: Path) -> None:
    assert "no such file or folder" in refused(tmp_path / "none.txt")
    written(tmp_path, sub___picture__png=b"x", **{"__hidden__txt": "Cats."})
    assert "the folder holds no document" in refused(tmp_path)
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    assert "no such file or folder" in refused(tmp_path / "loop.txt")


def test_a_pdf_that_is_cut_anywhere_is_read_or_refused_in_one_line() -> None:
    whole = made_pdf(["Cats sleep a lot.", "Dogs bark."])
    found: list[str] = []
    refusals: list[str] = []
    with DocumentParser() as read:
        for cut in range(0, 900, 15):
            try:
                found.append(read.pages(".pdf", whole[: len(whole) - cut])[0])
            except ConfigError as error:
                refusals.append(str(error))
    assert set(found) - {""} == {"Cats sleep a lot."}
    assert refusals
    assert not any("\n" in said for said in refusals)


def test_documents_are_called_by_their_place_in_what_was_named(tmp_path: Path) -> None:
    folder = written(tmp_path / "docs", b__md="Dogs bark.", a___c__txt="Cats.", a___d__HTM="<p>Eels.", a___e__jpg=b"x")
    assert names(folder) == ["a/c.txt", "a/d.HTM", "b.md"]
    assert names(folder / "b.md", folder / "a") == ["b.md", "c.txt", "d.HTM"]
    assert names(folder / "b.md", folder, folder / "b.md") == ["b.md", "a/c.txt", "a/d.HTM"], "each once"


def test_documents_of_equal_names_get_distinct_names(tmp_path: Path) -> None:
    one, two = written(tmp_path / "x" / "one", a__txt="Cats."), written(tmp_path / "x" / "two", a__txt="Dogs.")
    assert names(one, two / "a.txt") == ["one/a.txt", "two/a.txt"]


def test_texts_by_name() -> None:
    assert [(each.document, each.text) for each in documents_from_texts({"cats": "Cats sleep."}).chunks] == [
        ("cats", "Cats sleep.")
    ]
    for wrong in ({}, {"cats": ""}, {"": "Cats."}, {"cats": "\ud800 cat"}):
        with pytest.raises(ConfigError):
            documents_from_texts(wrong)


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
    monkeypatch.setattr(parser_client, "parse_timeout_s", lambda size_bytes: 0)
    (tmp_path / name).write_bytes(content)
    said = refused(tmp_path / name)
    assert said.startswith(f"document {name!r}: ")
    assert "0 s of computing" in said


def test_a_file_that_would_fill_the_memory_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_client, "MOST_MEMORY_BYTES", 2**27)
    (tmp_path / "wide.html").write_bytes(b"<a" + b" x=y" * 300_000 + b">Eels.")
    assert refused(tmp_path / "wide.html").startswith("document 'wide.html': it needs more memory")
    (tmp_path / "wide.html").write_bytes(b"<a x=y>Eels.")
    assert read_documents([str(tmp_path)])[0].pages == ("Eels.",)


def test_a_pdf_may_have_so_many_pages_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = ["Cats sleep.", "Dogs bark.", "Eels swim."]
    monkeypatch.setattr(pdf, "MOST_PAGES", 2)
    assert parser_process.parse_document(".pdf", made_pdf(pages[:2])).pages == tuple(pages[:2])
    assert "2 pages" in parser_process.parse_document(".pdf", made_pdf(pages)).refused
    monkeypatch.setattr(pdf, "MOST_PAGES", 3)
    monkeypatch.setattr(pdf, "MOST_CHARACTERS", 30)
    assert "30 characters" in parser_process.parse_document(".pdf", made_pdf(pages)).refused


def test_a_text_may_be_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_process, "MOST_CHARACTERS", 10)
    assert parser_process.parse_document(".html", b"<p>Eels swim.").pages == ("Eels swim.",)
    assert "10 characters" in parser_process.parse_document(".html", b"<p>Cats sleep.").refused


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

    monkeypatch.setattr(parser_process, "_pages", failing)
    said = parser_process.parse_document(".pdf", b"x").refused
    assert told in said
    assert "\n" not in said


def test_one_process_reads_all_documents_and_ends_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = parser_client._started

    def counted() -> subprocess.Popen[bytes]:
        started.append(start())
        return started[-1]

    monkeypatch.setattr(parser_client, "_started", counted)
    with DocumentParser() as read:
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

    monkeypatch.setattr(parser_client, "_started", broken)
    with DocumentParser() as read, pytest.raises(ConfigError, match=said):
        read.pages(".pdf", b"x" * 2**20)


def test_links_out_of_a_folder_are_skipped_and_others_followed(tmp_path: Path) -> None:
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
