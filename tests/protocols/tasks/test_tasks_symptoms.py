"""`symptoms:DIR`: the public table, de-duplicated, balanced at every limit, its traps and its real slice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from task_files import DATA, Write, cases, fails, summary

from moot.protocols.tasks import open_task
from moot.protocols.tasks.label_set import LabelSet
from moot.protocols.tasks.row import Row
from moot.protocols.tasks.symptoms import SPELLINGS
from moot.protocols.text.folding import fold
from moot.protocols.text.labels import canonical_label

REAL = DATA / "symptom_disease"
HEADER = "Disease,Symptom_1,Symptom_2,Symptom_3"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(*rows: str, descriptions: Sequence[str] = (), end: str = "\r\n") -> str:
        (tmp_path / "dataset.csv").write_bytes(end.join([HEADER, *rows, ""]).encode())
        if descriptions:
            lines = ["Disease,Description", *descriptions, ""]
            (tmp_path / "symptom_Description.csv").write_bytes(end.join(lines).encode())
        return f"symptoms:{tmp_path}"

    return _write


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_traps_of_the_public_file(write: Write, tmp_path: Path, end: str, mark: str) -> None:
    rows = [
        "Diabetes ,fatigue, weight_loss,",
        "Dimorphic hemmorhoids(piles),bloody_stool, foul_smell_of urine, dischromic _patches",
        "Diabetes, weight_loss,fatigue,",
        "Diabetes , weight_loss,polyuria,",
        "(vertigo) Paroymsal  Positional Vertigo, spinning_movements, vomiting, spinning_movements",
    ]
    told = ["Dimorphic hemorrhoids(piles),Swollen  veins.", "Diabetes , Too much sugar.", "Plague,Not in the table."]
    spec = write(*rows, descriptions=told, end=end)
    for file in tmp_path.glob("*.csv"):
        file.write_text(mark + file.read_text("utf-8"), "utf-8", newline="")
    found = cases(spec)
    labels = ("Diabetes", "Dimorphic hemmorhoids(piles)", "(vertigo) Paroymsal Positional Vertigo")
    assert [item.gold for item in found] == [*labels, "Diabetes"]
    assert [item.case.id for item in found] == [f"symptoms-{n}" for n in range(4)]
    assert [item.case.question.split("\n\n")[1] for item in found] == [
        "Symptoms: fatigue, weight loss.",
        "Symptoms: bloody stool, foul smell of urine, dischromic patches.",
        "Symptoms: spinning movements, vomiting.",
        "Symptoms: weight loss, polyuria.",
    ]
    for item in found:
        assert item.case.labels == labels
        assert item.case.documents == ("Diabetes: Too much sugar.", "Dimorphic hemmorhoids(piles): Swollen veins.")
    aliases = found[0].case.aliases
    assert canonical_label("BPPV", labels, (), aliases) == labels[2]
    assert canonical_label("Hemorrhoids.", labels, (), aliases) == labels[1]


@pytest.mark.parametrize(
    ("rows", "line", "field", "expected"),
    [
        (["A,x,,", ",y,,"], 3, "Disease", "expected text, found none"),
        (["A,x,,", "B,, ,"], 3, "Symptom_1", "expected at least one symptom, found none"),
        (["A,x,,", "B,y"], 3, "", "expected 4 cells"),
        (["A,x,,", "a.,y,,"], 3, "Disease", "expected distinct labels, 'a.' reads like 'A' in line 2"),
        (["A,x,,", "A,y,,"], 0, "Disease", "expected at least two diseases, found 1"),
        ([], 0, "Disease", "expected at least two diseases, found 0"),
    ],
)
def test_a_bad_table_is_named(write: Write, rows: list[str], line: int, field: str, expected: str) -> None:
    fails(write(*rows), line, field, expected, file="dataset.csv")


def test_bad_descriptions_are_named(write: Write, tmp_path: Path) -> None:
    rows = ("A,x,,", "B,y,,")
    fails(write(*rows, descriptions=["A,"]), 2, "Description", "found none", file="symptom_Description.csv")
    fails(write(*rows, descriptions=["A,b,c"]), 2, "", "expected 2 cells", file="symptom_Description.csv")
    (tmp_path / "symptom_Description.csv").write_text("Name,Text\n")
    fails(write(*rows), 1, "Disease", "is missing", file="symptom_Description.csv")


def test_a_bad_folder_is_named(tmp_path: Path) -> None:
    fails(f"symptoms:{tmp_path}/none", 0, "", "no such folder")
    fails(f"symptoms:{tmp_path}", 0, "", "expected a folder with dataset.csv, found none in it")
    file = tmp_path / "dataset.csv"
    file.write_text("Disease,Symptom\nA,x\n")
    fails(f"symptoms:{file}", 0, "", "expected a folder, found a file")
    fails(
        f"symptoms:{tmp_path}",
        1,
        "Symptom_1",
        "is missing; expected the columns Disease, Symptom_1",
        file="dataset.csv",
    )


def _stratified(gold: Sequence[str | None]) -> None:
    """At every limit, classes that still have cases differ by at most one, and none that has run out has more."""
    total, so_far = Counter(gold), Counter[str | None]()
    for label in gold:
        so_far[label] += 1
        most = max(so_far.values())
        assert all(so_far[each] >= min(most - 1, total[each]) for each in total), (so_far, total)


@given(rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), min_size=2, max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_limit_is_a_stratified_selection(write: Write, rows: list[tuple[int, int]]) -> None:
    rows = [(0, 0), (1, 0), *rows]
    spec = write(*(f"Disease {disease},s_{symptom},," for disease, symptom in rows))
    found = cases(spec)
    assert Counter(item.gold for item in found) == Counter(f"Disease {disease}" for disease, _ in set(rows))
    _stratified([item.gold for item in found])


def test_no_two_diseases_share_a_name() -> None:
    names = LabelSet()
    rows = {form: Row("names", line, {}) for line, form in enumerate(SPELLINGS, start=1)}
    for form, row in rows.items():
        names.add(row, form)
    for form, spellings in SPELLINGS.items():
        for spelling in spellings:
            names.add_alias(rows[form], form, spelling)
    assert [len(known) for known in names.aliases] == [len({fold(each) for each in s}) for s in SPELLINGS.values()]


@pytest.mark.needs("data/symptom_disease")
def test_real_slice() -> None:
    task = open_task(f"symptoms:{REAL}")
    found = summary(task)
    assert (found.count, len(found.gold), found.unlabelled) == (146, 41, 0)
    assert (min(found.gold.values()), max(found.gold.values())) == (2, 6)
    items = cases(task)
    _stratified([item.gold for item in items])
    case = items[0].case
    assert len({item.case.question for item in items}) == 146
    assert not any("_" in item.case.question or "  " in item.case.question for item in items)
    labels = case.labels or ()
    assert {"Diabetes", "Hypertension", "GERD", "hepatitis A"} <= set(labels)
    assert [document.partition(":")[0] for document in case.documents] == list(labels)
    assert {fold(label) for label in labels} >= set(SPELLINGS), "every other name belongs to a disease of the table"
    for text, label in {
        "Hypertension ": "Hypertension",
        "Dimorphic hemorrhoids(piles)": "Dimorphic hemmorhoids(piles)",
        "Gastroesophageal reflux disease": "GERD",
        "benign paroxysmal positional vertigo": "(vertigo) Paroymsal Positional Vertigo",
        "Hepatitis A": "hepatitis A",
        "osteoarthritis": "Osteoarthristis",
    }.items():
        assert canonical_label(text, labels, (), case.aliases) == label
