"""ASAP's essays: a case per essay and trait, the text untouched, every rater kept, and each bad cell named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from task_files import DATA, Write, cases, summary

from moot.protocols.case import Reference
from moot.protocols.errors import ConfigError, TaskFileError
from moot.protocols.tasks import is_correct, open_task
from moot.protocols.tasks.asap_criteria import ESSAY_SETS

REAL = DATA / "asap_aes" / "training_set_rel3.tsv"

needs_real = pytest.mark.needs("data/asap_aes")

HEADER = [
    *("essay_id", "essay_set", "essay", "rater1_domain1", "rater2_domain1", "rater3_domain1", "domain1_score"),
    *("rater1_domain2", "rater2_domain2", "domain2_score"),
    *(f"rater{rater}_trait{trait}" for rater in (1, 2, 3) for trait in range(1, 7)),
]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file as it is downloaded: Windows-1252, tabs, CRLF; each line as bytes or cells."""

    def _write(*lines: bytes | list[str], header: list[str] = HEADER, name: str = "essays.tsv") -> str:
        raw = [line if isinstance(line, bytes) else "\t".join(line).encode("cp1252") for line in (header, *lines)]
        path = tmp_path / name
        path.write_bytes(b"".join(line + b"\r\n" for line in raw))
        return f"asap:{path}"

    return _write


def line(essay: str = "Once.", number: int = 7, identity: str = "9", **scores: str) -> list[str]:
    """A row in which raters 1 and 2 gave 2 everywhere, except where told otherwise."""
    traits = 4 if number == 7 else 6
    cells = dict.fromkeys(HEADER, "")
    cells |= {f"rater{rater}_trait{trait}": "2" for rater in (1, 2) for trait in range(1, traits + 1)}
    cells |= {"essay_id": identity, "essay_set": str(number), "essay": essay, **scores}
    return [cells[name] for name in HEADER]


def test_an_essay_of_set_7_is_four_cases(write: Write) -> None:
    found = cases(write(line(rater1_trait2="3", rater2_trait2="1")))
    assert [item.case.id for item in found] == [
        "asap-7-9-ideas", "asap-7-9-organization", "asap-7-9-style", "asap-7-9-conventions",
    ]  # fmt: skip
    second = found[1]
    assert (second.case.labels, second.case.passage, second.case.domain) == (tuple("0123"), "Once.", "rubric scoring")
    assert second.case.criterion is not None
    assert second.case.criterion.guide in second.case.question
    assert second.case.criterion.assignment == second.case.title
    assert "organization" in second.case.question
    assert second.reference == Reference(
        scoring="score", accepted=("3", "1"), ratings=(3.0, 1.0), group="asap-7-9", part="asap-7"
    )
    assert [is_correct(answer, second.gold, second.reference) for answer in "0123"] == [False, True, False, True]
    assert {item.reference.group for item in found} == {"asap-7-9"}


def test_set_8_has_six_traits_and_perhaps_a_third_rater(write: Write) -> None:
    found = cases(write(line(number=8, rater3_trait1="4")))
    assert [item.case.id.removeprefix("asap-8-9-") for item in found] == [
        "ideas-and-content", "organization", "voice", "word-choice", "sentence-fluency", "conventions",
    ]  # fmt: skip
    assert found[0].case.labels == tuple("123456")
    assert [item.reference.ratings for item in found[:2]] == [(2.0, 2.0, 4.0), (2.0, 2.0, None)]
    assert [item.gold for item in found[:2]] == ["2", "2"]


def test_bytes_of_windows_1252_and_those_that_it_leaves_open(write: Write) -> None:
    essay = b"I didn\x92t wait\x85 \x93well\x94 \x9d"
    row = "\t".join(line("ESSAY")).encode().replace(b"ESSAY", essay)
    assert cases(write(row))[0].case.passage == "I didn\u2019t wait\u2026 \u201cwell\u201d \x9d"


@pytest.mark.parametrize(
    ("cell", "essay"),
    [
        ('"She said ""wait"", so I did."', 'She said "wait", so I did.'),
        ('"a\tb\t""c"""', 'a\tb\t"c"'),
        ("a\tb", "a\tb"),
        ('"I", he said, and "you" too', '"I", he said, and "you" too'),
        ('"Wait!" she said. "Soon."', '"Wait!" she said. "Soon."'),
        ('"half "quoted" text"', '"half "quoted" text"'),
        ('"Only said"', "Only said"),
        ('""Wait"", she said."', '""Wait"", she said."'),
        (" two  spaces \x0b ", " two  spaces \x0b "),
        ('"', '"'),
    ],
)
def test_tabs_and_quotes_in_an_essay(write: Write, cell: str, essay: str) -> None:
    found = cases(write(line(cell)))
    assert [item.case.passage for item in found] == [essay] * 4
    assert [item.gold for item in found] == ["2"] * 4


def test_only_the_sets_asked_for_are_read(write: Write) -> None:
    spec = write(line(identity="1"), line(number=3, identity="2", rater1_trait1="99"), line(number=8, identity="3"))
    assert Counter(item.reference.group for item in cases(spec)) == {"asap-7-1": 4, "asap-8-3": 6}
    assert {item.reference.group for item in cases(f"{spec}:set=8")} == {"asap-8-3"}
    assert [item.case for item in cases(f"{spec}:set=8,7")] == [item.case for item in cases(f"{spec}:set=7,8")]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            {"rater1_trait1": "4"},
            r"essays.tsv:2: field `rater1_trait1`: expected a whole number from 0 to 3 or nothing",
        ),
        ({"rater2_trait4": "2.5"}, r"field `rater2_trait4`: .* found '2.5'"),
        ({"rater2_trait4": "\u00b2"}, r"field `rater2_trait4`"),
        ({"essay": "  "}, "field `essay`: expected text, found none"),
        ({"essay_id": ""}, "field `essay_id`"),
        ({"essay_set": "9"}, "field `essay_set`: expected 1 to 8, found '9'"),
    ],
)
def test_bad_cells_are_named(write: Write, cells: dict[str, str], message: str) -> None:
    row = [cells.get(name, cell) for name, cell in zip(HEADER, line(), strict=True)]
    with pytest.raises(TaskFileError, match=message):
        open_task(write(row)).validate()


def test_other_bad_input(write: Write) -> None:
    with pytest.raises(TaskFileError, match=r"essays.tsv:2: .*found 27"):
        open_task(write(line()[:-1])).validate()
    with pytest.raises(TaskFileError, match="`rater2_trait4`"):
        open_task(write(header=[name for name in HEADER if name != "rater2_trait4"])).validate()
    with pytest.raises(TaskFileError, match=r"`id`.*'asap-7-9-ideas'"):
        open_task(write(line(), line())).validate()
    with pytest.raises(TaskFileError, match="found none"):
        open_task(write(line(number=8)) + ":set=7").validate()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (":set=1", "essay set 1 has no trait scores, only sets 7 and 8"),
        (":set=7,2", "essay set 2 has no trait scores"),
        (":set=9", "`set` is one of 7 and 8"),
        (":set=", "`set` is one of 7 and 8"),
        (":set=\u0667", "`set` is one of 7 and 8"),
        (":sets=7", "unknown option of task 'asap' 'sets': did you mean 'set'"),
        (":set=7:set=8", "the option 'set' is there twice"),
    ],
)
def test_options_that_are_none(write: Write, options: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        open_task(write(line()) + options)
    assert "\n" not in str(caught.value)


def test_the_criteria_say_what_every_score_means() -> None:
    for one in ESSAY_SETS.values():
        for criterion in one.criteria:
            scores = [int(text.partition(":")[0]) for text in criterion.guide.split("\n")]
            assert scores == list(range(criterion.highest, criterion.lowest - 1, -1)), criterion.trait


@needs_real
def test_the_public_file() -> None:
    found = summary(f"asap:{REAL}")
    assert (found.count, found.unlabelled) == (143 * 4 + 103 * 6, 0)
    items = cases(f"asap:{REAL}")
    raters = Counter(sum(r is not None for r in item.reference.ratings) for item in items if "asap-8" in item.case.id)
    assert raters == {2: 82 * 6, 3: 21 * 6}
    first = items[0]
    assert (first.case.id, first.reference.ratings) == ("asap-7-17840-ideas", (2.0, 3.0))


@needs_real
def test_the_public_file_loses_no_character() -> None:
    """Written as the file has them, the essays are the file's own bytes again."""
    essays = {item.reference.group: item.case.passage for item in cases(f"asap:{REAL}")}
    for raw in REAL.read_bytes().split(b"\r\n")[1:-1]:
        identity, number, cell = raw.split(b"\t")[:3]
        essay = essays[f"asap-{number.decode()}-{identity.decode()}"]
        encoding = "utf-8" if is_utf8(cell) else "cp1252"
        doubled = essay.replace('"', '""')
        ways = [f'"{doubled}"', essay] if cell.startswith(b'"') else [essay]
        assert cell in [way.encode(encoding) for way in ways], identity


def is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
