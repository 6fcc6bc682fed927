"""Near names of mistyped paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.protocols.near_paths import near_path


@pytest.mark.parametrize(
    ("path", "holds", "meant"),
    [
        ("quizz.csv", "", "quiz.csv"),
        ("dat/quiz.csv", "", "data/quiz.csv"),
        ("data/quis.csv", "", "data/quiz.csv"),
        ("run/a", "run.yaml", "runs/a"),
        ("runs/b", "run.yaml", None),
        ("dat/other.csv", "", None),
        ("elsewhere", "", None),
        ("hiden.csv", "", None),
        ("quiz.csv", "", None),
        ("quiz.csv/x", "", None),
        ("a\0b", "", None),
        ("x" * 5000, "", None),
    ],
)
def test_a_similar_path_that_exists_is_named(
    path: str, holds: str, meant: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("quiz.csv", "data/quiz.csv", "runs/a/run.yaml", ".hidden.csv"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    monkeypatch.chdir(tmp_path)
    assert near_path(path, holds) == (f"; did you mean {meant!r}?" if meant else "")
    if meant:
        assert near_path(tmp_path / path, holds) == f"; did you mean {str(tmp_path / meant)!r}?"
