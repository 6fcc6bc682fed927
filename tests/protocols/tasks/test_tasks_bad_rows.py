"""One bad row in a file: every task names its line, its field and what was expected, in one line."""

from __future__ import annotations

from typing import Any

import pytest
from task_files import Write, article, fails, jsonl

GOOD: dict[str, dict[str, Any]] = {
    "boolq": {"question": "is it so", "title": "It", "answer": True, "passage": "It is so."},
    "claims": {"claim": "c"},
    "cosmosqa": {"id": "c0", "question": "Why ?", **{f"answer{n}": str(n) for n in range(4)}, "label": 2},
    "fever": {"id": 7, "label": "SUPPORTS", "claim": "It flies.", "evidence": [[[1, 2, "The_Bird", 0]]]},
    "gsm8k": {"question": "q", "answer": "#### 1"},
    "halueval": {"ID": "1", "user_query": "Say.", "chatgpt_response": "Said.", "hallucination": "no"},
    "nq": {"question": "q", "answer": ["x"]},
    "qags": article(("yes",)),
    "replies": {"reply": "fine"},
    "subjects": {"subject": "s"},
}
NO_EVIDENCE: tuple[object, ...] = (3, [[]], {"page": "x"})
SENTENCES = "expected a list of sentences, each an object, found"


def summed_up(sentences: object) -> dict[str, object]:
    return {"summary_sentences": sentences}


CHANGES: list[tuple[str, dict[str, Any], str, str]] = [
    ("boolq", {"answer": "true"}, "answer", "expected true or false, found 'true'"),
    ("boolq", {"answer": 1}, "answer", "expected true or false, found 1"),
    ("boolq", {"question": " "}, "question", "expected text, found none"),
    ("boolq", {"passage": "\ud800"}, "passage", "surrogate"),
    ("boolq", {"title": None}, "title", "found null"),
    ("boolq", {"id": ""}, "id", "found none"),
    ("boolq", {"id": "boolq-0"}, "id", "expected a unique id, 'boolq-0' occurs earlier"),
    ("claims", {"label": "maybe"}, "label", "expected supported or hallucinated (also true or false, 1 or 0)"),
    ("claims", {"label": 2}, "label", "found 2"),
    ("claims", {"documents": "text"}, "documents", "expected a list of texts, found 'text'"),
    ("claims", {"images": {"a": 1}}, "images", "expected a list of texts, found an object"),
    ("cosmosqa", {"id": "c1", "label": 4}, "label", "expected 0, 1, 2 or 3, found 4"),
    ("cosmosqa", {"id": "c1", "label": "B"}, "label", "found 'B'"),
    ("cosmosqa", {"id": "c1", "label": True}, "label", "found true"),
    ("fever", {"label": "MAYBE"}, "label", "expected SUPPORTS, REFUTES or NOT ENOUGH INFO, found 'MAYBE'"),
    *(("fever", {"evidence": bad}, "evidence", "expected a text, or lists") for bad in NO_EVIDENCE),
    *(("gsm8k", {"answer": bad}, "answer", "") for bad in (5, "It is 5.", "####", "#### five", "#### 5 or 6")),
    ("halueval", {"hallucination": "perhaps"}, "hallucination", "expected yes or no, found 'perhaps'"),
    *(("nq", {"answer": bad}, "answer", "") for bad in ([""], [1], {"a": 1})),
    ("qags", summed_up([]), "summary_sentences", f"{SENTENCES} an empty"),
    ("qags", summed_up("S."), "summary_sentences", f"{SENTENCES} 'S.'"),
    ("qags", summed_up(["S."]), "summary_sentences", f"{SENTENCES} a list"),
    ("qags", summed_up([{"sentence": "S."}]), "summary_sentences", "expected a list of responses"),
    ("qags", article(()), "summary_sentences", "expected a list of responses"),
    ("qags", article(("yes", "maybe")), "summary_sentences", "expected responses yes or no, found 'maybe'"),
    ("qags", article((["yes"],)), "summary_sentences", "expected responses yes or no, found a list"),
    ("replies", {"prompt": ["y"]}, "prompt", "a list of messages with role and content, found 'y'"),
    ("replies", {"prompt": [{"role": "usr", "content": "y"}]}, "prompt", "system, user or assistant, found 'usr'"),
    ("subjects", {"subject": 3}, "subject", "expected text, found 3"),
    ("subjects", {"facts": ["f"]}, "facts", "expected text, found a list"),
    ("subjects", {"id": "subjects-0"}, "id", "occurs earlier"),
]
OTHER_ROWS: list[tuple[str, object, str, str]] = [
    ("halueval", {"claim": "x"}, "", "which has one of the fields right_answer, right_response, right_summary"),
    ("replies", {"prompt": "x"}, "reply", "is missing"),
    ("subjects", {"facts": "f"}, "subject", "is missing; expected the fields subject"),
    ("subjects", "a line", "", "expected one JSON object per line"),
]


@pytest.mark.parametrize(
    ("task", "row", "field", "expected"),
    [*((task, GOOD[task] | row, *said) for task, row, *said in CHANGES), *OTHER_ROWS],
)
def test_a_bad_row_is_named(write: Write, task: str, row: object, field: str, expected: str) -> None:
    fails(f"{task}:{write(jsonl(GOOD[task]) + chr(10) + jsonl(row))}", 3, field, expected)
