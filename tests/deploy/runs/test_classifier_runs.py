"""`moot train-classifier`, and `--classifier` on a run: its effect, refusals, and resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from not_none import not_none
from planted_records import PlantedSession, Printed
from planted_rulings import FACTS, HASHED, add_claims
from summary_debate import BAD, GOOD, Classifying, SummaryDebate, card, write_classifier_folder
from typer.testing import CliRunner

from moot.actors.classifiers.card import ClassifierCard, read_card
from moot.actors.record.referenced_files import CLASSIFIER_CARD
from moot.deploy.cli.main import app
from moot.deploy.results.figures.comparison import compare, comparison_blocks
from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.record import read_events
from moot.deploy.results.report.render import show_report
from moot.deploy.results.show import show
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.run import run
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED, text_hash
from moot.protocols.errors import ConfigError, RunMismatch

CLAIMS = [
    {"id": f"c-{n}", "question": text, "labels": list(CLAIM_LABELS), "gold": SUPPORTED}
    for n, text in enumerate([GOOD, BAD])
]


def small(out: Path, classifier: Path | None, **options: Any) -> dict[str, Any]:
    more = {"task": CLAIMS, "protocol": SummaryDebate(), "engine": "inline", "out": out}
    return {**more, **({} if classifier is None else {"classifier": classifier}), **options}


def test_a_run_records_its_classifier_and_resumes_with_no_other(tmp_path: Path) -> None:
    clf, other = (
        write_classifier_folder(tmp_path / "clf", card()),
        write_classifier_folder(tmp_path / "other", card(ridge=2.0)),
    )
    done = run(**small(tmp_path / "run", clf, limit=1))
    assert (done.status, done.failed) == ("finished", 0)
    written = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())
    assert written["classifier_digest"] == card().digest
    for wrong in (other, None):
        with pytest.raises(RunMismatch, match=f"classifier_digest: was {card().digest}"):
            run(**small(tmp_path / "run", wrong))
    moved = clf.rename(tmp_path / "moved")
    assert run(**small(tmp_path / "run", moved)).done == 2
    assert all(noted.data["classifier"] for noted in read_events(tmp_path / "run", ["ruling"]))
    again = prepare(RunConfig.build(tmp_path / "run" / "run.yaml"), task=CLAIMS, protocol=SummaryDebate())
    assert again.classifier is not None


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"protocol": "selene", "task": "sample"}, "selene"),
        ({"classifier": "."}, "no classifier there"),
        ({"encoder": "http://127.0.0.1:9/v1#m"}, f"it reads vectors of the encoder {HASHED}"),
    ],
)
def test_it_is_refused_where_it_is_of_no_use(options: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why):
        run(**{**small(tmp_path / "run", write_classifier_folder(tmp_path / "clf", card())), **options})
    assert not (tmp_path / "run").exists()


def test_claims_it_was_trained_on_are_left_out_in_whatever_spelling_and_with_their_groups(
    tmp_path: Path, printed: Printed
) -> None:
    """Trained on c-0 (elsewhere, with another passage) and on another claim of the page that c-1 is of."""
    known_claims, known_groups = [text_hash(f"  {GOOD.upper()} !")], (text_hash("the  PAGE"),)
    clf = write_classifier_folder(tmp_path / "clf", card(known_claims, trained_on_groups=known_groups))
    labels = list(CLAIM_LABELS)
    claims = [
        {"id": "c-0", "question": GOOD, "labels": labels, "gold": SUPPORTED, "passage": "Another passage."},
        {"id": "c-1", "question": BAD, "labels": labels, "gold": HALLUCINATED, "group": "The page"},
        {"id": "c-2", "question": f"{GOOD} too", "labels": labels, "gold": SUPPORTED, "group": "Another page"},
        {"id": "c-3", "question": f"{BAD} too", "labels": labels, "gold": HALLUCINATED},
    ]
    run(**small(tmp_path / "run", clf, task=claims, protocol=Classifying()))
    run(**small(tmp_path / "all", clf, task=claims[:2], protocol=Classifying()))
    run(**small(tmp_path / "bare", None, task=claims, protocol=Classifying()))
    clf.rename(tmp_path / "gone")
    found = not_none(summarise(tmp_path / "run").detection)
    assert (found.trained_on, found.group_trained_on, found.whole and found.whole.n) == (1, 1, 2)
    compared = compare([tmp_path / "bare", tmp_path / "run", tmp_path / "all"])
    assert [(row.trained_on, row.group_trained_on) for row in compared.rows] == [(0, 0), (1, 1), (1, 1)]
    words = " ".join(printed(show_report, compared, lambda: comparison_blocks(compared)).split())
    assert "run: 2 claims left out: its classifier was trained on 1 of them, and on others of the groups of 1" in words
    assert "all: 2 claims left out" in words
    assert "bare: " not in words
    assert "1 of a group in the classifier's training data" in " ".join(printed(show, tmp_path / "run").split())


def invoke(*arguments: object) -> Any:
    return CliRunner(env={"COLUMNS": "150"}).invoke(app, [str(each) for each in arguments])


def test_the_command_trains_shows_and_says_when_it_is_done_already(session: PlantedSession, tmp_path: Path) -> None:
    folder = add_claims(session, 60).plant(**FACTS)
    first = invoke("train-classifier", folder, "--out", tmp_path / "clf")
    assert first.exit_code == 0, first.output
    assert "the judges' bare verdict" in first.output
    assert "training, and evaluating on 5 held-out folds" in first.output
    second = invoke("train-classifier", folder, "--out", tmp_path / "clf", "--quiet", "--format", "json")
    assert second.exit_code == 0
    assert ClassifierCard.model_validate_json(second.output) == read_card(tmp_path / "clf")
    third = invoke("train-classifier", folder, "--out", tmp_path / "clf")
    assert "already contains this classifier" in third.output
    assert [path.name for path in (tmp_path / "clf").iterdir()] == [CLASSIFIER_CARD]
    refused = invoke("train-classifier", folder, "--out", tmp_path / "clf2", "--folds", "99")
    assert isinstance(refused.exception, ConfigError)
    assert "--folds" in str(refused.exception)
