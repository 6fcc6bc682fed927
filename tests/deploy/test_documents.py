"""Reading documents: what each kind says, what they are called, and one line for what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_pdfs import made_pdf

from moot.deploy.documents import docs
from moot.deploy.documents.docs import Document, chunked, docs_of_texts, open_docs, read_documents
from moot.deploy.documents.pdf import read_pdf
from moot.deploy.documents.reading import Reading, read_plain_text
from moot.deploy.documents.web_page import read_markdown, read_web_page, text_of_html
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
    assert text_of_html("<div><b>" * 5000 + "deep") == "deep"
    assert text_of_html("<?xml version='1.0'?><p>notes.txt") == "notes.txt"


@given(st.text(alphabet=st.sampled_from("<>/ap&;#x1!-= \n'\""), max_size=60))
def test_any_markup_is_read(markup: str) -> None:
    text_of_html(markup)


def test_markdown_is_read_without_its_marks() -> None:
    text = read_markdown(MARKDOWN.encode())
    assert "unseen" not in text
    document = Document("why.md", (text,))
    found = [chunk.text for chunk in chunked([document])]
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
    found = open_docs([str(tmp_path)], "hashed-ngrams-512-v1")
    assert (found.documents, found.size) == (1, 12)
    assert [(each.page, each.chunk) for each in found.chunks] == [(number + 1, number) for number in range(12)]
    assert all(each.text.startswith(f"Page {each.page} says this and this") for each in found.chunks)


def test_a_sentence_that_goes_on_over_the_page_is_on_the_page_on_which_it_begins() -> None:
    document = Document("long.pdf", ("Cats sleep. They hunt", "", "at dawn.", "Dogs bark."), paged=True)
    found = [(chunk.page, chunk.text) for chunk in chunked([document])]
    assert found == [(1, "Cats sleep. They hunt"), (3, "at dawn."), (4, "Dogs bark.")]
    without = Document("long.pdf", ("Cats sleep. They hunt", "at dawn.", "Dogs bark."), paged=True)
    assert [(chunk.page, chunk.text) for chunk in chunked([without])] == [
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
def test_what_cannot_be_read_is_said_in_one_line(
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
    with Reading() as read:
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


def test_where_two_would_be_called_the_same_all_are_told_apart(tmp_path: Path) -> None:
    one, two = written(tmp_path / "x" / "one", a__txt="Cats."), written(tmp_path / "x" / "two", a__txt="Dogs.")
    assert names(one, two / "a.txt") == ["one/a.txt", "two/a.txt"]


def test_texts_by_name() -> None:
    assert [(each.document, each.text) for each in docs_of_texts({"cats": "Cats sleep."}).chunks] == [
        ("cats", "Cats sleep.")
    ]
    for wrong in ({}, {"cats": ""}, {"": "Cats."}, {"cats": "\ud800 cat"}):
        with pytest.raises(ConfigError):
            docs_of_texts(wrong)
