"""`subjects:FILE`: what is debated without labels and without a right answer."""

from __future__ import annotations

from task_files import Write, cases, jsonl, summary

from moot.protocols.case import Case, LabelledCase

SUBJECT = "Should we regulate the use of LLMs in academic research?"


def test_three_layouts_one_content(write: Write) -> None:
    lines = write(f"\ufeff{SUBJECT}\r\n\r\n   \n  Is it {{fair}}, or not?  \n", "s.txt")
    rows = write(jsonl({"subject": SUBJECT}, {"subject": "Is it {fair}, or not?"}))
    table = write(f'\ufeffsubject,facts\r\n{SUBJECT},\r\n"Is it {{fair}}, or not?",\r\n', "s.csv")
    wanted = [
        LabelledCase(Case(id="subjects-0", question=SUBJECT), 0),
        LabelledCase(Case(id="subjects-1", question="Is it {fair}, or not?"), 1),
    ]
    for path in (lines, rows, table):
        assert cases(f"subjects:{path}") == wanted
    assert len({summary(f"subjects:{path}").digest for path in (lines, rows, table)}) == 1


def test_facts_become_the_passage_and_there_is_no_gold(write: Write) -> None:
    row = {"id": "llm", "subject": SUBJECT, "facts": "Two journals forbid it.", "gold": "For", "label": "For"}
    spec = f"subjects:{write(jsonl(row))}"
    (found,) = cases(spec)
    assert found == LabelledCase(Case(id="llm", question=SUBJECT, passage="Two journals forbid it."), 0, None)
    read = summary(spec)
    assert (read.name, read.count, read.gold, read.unlabelled) == ("subjects", 1, {}, 1)
