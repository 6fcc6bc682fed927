"""Claims of one's own, from a file and in memory: labels in every spelling, pictures from their folder only."""

from __future__ import annotations

from pathlib import Path

import pytest
from task_files import Write, cases, fails, jsonl, summary

from moot.protocols.case import Image
from moot.protocols.claims import CLAIM_ALIASES, CLAIM_LABELS, is_claim
from moot.protocols.errors import ConfigError
from moot.protocols.tasks import Task


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(*rows: object) -> str:
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        path = folder / "claims.jsonl"
        path.write_text(jsonl(*rows))
        return f"claims:{path}"

    return _write


class Album:
    """A reader of pictures that counts what it reads."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, file: Path | bytes) -> Image:
        assert isinstance(file, Path)
        self.read.append(file.name)
        data = file.read_bytes()
        if not data.startswith(b"PNG"):
            raise ConfigError(f"{file}: the picture is broken")
        return Image("image/png", data)


def test_a_claim_with_everything(write: Write) -> None:
    row = {
        "id": "bus",
        "claim": "The bus is late.",
        "label": "false",
        "passage": "It came on time.",
        "documents": ["The timetable.", "The log."],
        "group": "buses",
        "part": "spring",
        "category": "traffic",
    }
    (found,) = cases(write(row))
    assert is_claim(found.case)
    assert (found.case.id, found.case.question, found.gold) == ("bus", "The bus is late.", "hallucinated")
    assert (found.case.passage, found.case.documents) == ("It came on time.", ("The timetable.", "The log."))
    reference = found.reference
    assert (reference.group, reference.part, reference.tags) == ("buses", "spring", {"category": "traffic"})


@pytest.mark.parametrize(
    ("label", "gold"),
    [
        *((name, name) for name in CLAIM_LABELS),
        *((alias, label) for label, aliases in zip(CLAIM_LABELS, CLAIM_ALIASES, strict=True) for alias in aliases),
        (True, "supported"),
        (False, "hallucinated"),
        (1, "supported"),
        (0, "hallucinated"),
        (" Supported. ", "supported"),
        ("", None),
        (None, None),
    ],
)
def test_a_label_in_every_spelling(write: Write, label: object, gold: str | None) -> None:
    (found,) = cases(write({"claim": "c", "label": label}))
    assert found.gold == gold


def test_csv_with_several_pictures_in_a_cell(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"PNG" + name.encode())
    file = tmp_path / "claims.csv"
    file.write_text("claim,label,images,documents,category\nOne.,TRUE,a.png; b.png;,,\nTwo.,0,,,odd\n")
    one, two = cases(f"claims:{file}", Album())
    assert [image.data for image in one.case.images] == [b"PNGa.png", b"PNGb.png"]
    assert (one.gold, one.reference.tags, one.case.documents) == ("supported", {}, ())
    assert (two.gold, two.reference.tags, two.case.images) == ("hallucinated", {"category": "odd"}, ())


# --- pictures


def test_each_picture_is_read_once_in_a_pass_and_none_without_a_reader(write: Write, tmp_path: Path) -> None:
    spec = write(*({"claim": f"c{n}", "images": ["sub/a.png"]} for n in range(3)), {"claim": "none"})
    (tmp_path / "mine" / "sub").mkdir()
    (tmp_path / "mine" / "sub" / "a.png").write_bytes(b"PNG")
    album = Album()
    found = summary(spec, album)
    assert (found.count, found.pictured, album.read) == (4, 3, ["a.png"])
    assert all(not item.case.images for item in cases(spec))
    seen = [len(item.case.images) for item in cases(spec, album)]
    assert seen == [1, 1, 1, 0]


def test_another_picture_is_another_task(write: Write, tmp_path: Path) -> None:
    spec = write({"claim": "c", "images": ["a.png"]})
    digests = []
    for data in (b"PNG 1", b"PNG 2"):
        (tmp_path / "mine" / "a.png").write_bytes(data)
        digests.append(summary(spec, Album()).digest)
    assert digests[0] != digests[1]


@pytest.mark.parametrize("name", ["../secret.png", "sub/../../secret.png", "{root}/secret.png", "link.png"])
def test_no_picture_outside_the_folder_is_read(write: Write, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.png").write_bytes(b"PNG")
    spec = write({"claim": "a"}, {"claim": "c", "images": [name.format(root=tmp_path)]})
    (tmp_path / "mine" / "link.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "mine" / "sub").mkdir()
    album = Album()
    fails(spec, 2, "images", "is outside", load=album)
    assert album.read == []


def test_a_broken_picture_is_named_with_its_row(write: Write, tmp_path: Path) -> None:
    spec = write({"claim": "a"}, {"claim": "c", "images": ["a.png"]})
    (tmp_path / "mine" / "a.png").write_bytes(b"GIF")
    fails(spec, 2, "", "a.png: the picture is broken", load=Album())


# --- in memory


def test_a_claim_in_memory_is_a_whole_case() -> None:
    rows: list[dict[str, object]] = [
        {"claim": "It is so.", "label": 0, "category": "x", "passage": "p", "group": "g"},
        {"claim": "Is it?"},
    ]
    one, two = Task.from_cases(rows).cases()
    assert is_claim(one.case)
    assert (one.case.question, one.case.aliases, one.case.passage) == ("It is so.", CLAIM_ALIASES, "p")
    assert (one.gold, one.reference.group, one.reference.tags) == ("hallucinated", "g", {"category": "x"})
    assert (is_claim(two.case), two.gold) == (True, None)


@pytest.mark.parametrize(
    ("case", "field", "expected"),
    [
        ({"claim": "c", "label": "perhaps"}, "label", "expected supported or hallucinated"),
        ({"claim": "c", "gold": "supported"}, "gold", "follows from the claim"),
        ({"claim": "c", "labels": ["Yes", "No"]}, "labels", "leave it out"),
        ({"claim": "c", "colour": 1}, "colour", "is unknown"),
        ({"question": "q", "label": "supported"}, "label", "is unknown"),
    ],
)
def test_a_claim_in_memory_that_is_none_is_named(case: dict[str, object], field: str, expected: str) -> None:
    fails(Task.from_cases([dict[str, object](claim="good"), case]), 2, field, expected)
