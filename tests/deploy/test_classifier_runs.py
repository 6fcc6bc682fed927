"""`moot train-classifier`, and `--classifier` on a run: what it does, what it refuses, and going on with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from rulings import FACTS, HASHED, add_claims
from summary_debate import BAD, GOOD, SummaryDebate, card, put
from typer.testing import CliRunner

from moot.actors.classifiers.card import CARD, Body
from moot.deploy.cli.main import app
from moot.deploy.reading.record import read_events
from moot.deploy.running.config import RunConfig
from moot.deploy.running.prepare import prepare
from moot.deploy.running.run import run
from moot.protocols.claims import CLAIM_LABELS, SUPPORTED
from moot.protocols.errors import ConfigError, RunMismatch

CLAIMS = [
    {"id": f"c-{n}", "question": text, "labels": list(CLAIM_LABELS), "gold": SUPPORTED}
    for n, text in enumerate([GOOD, BAD])
]


def small(out: Path, classifier: Path | None, **options: Any) -> dict[str, Any]:
    more = {"task": CLAIMS, "protocol": SummaryDebate(), "engine": "inline", "out": out}
    return {**more, **({} if classifier is None else {"classifier": classifier}), **options}


def test_a_run_records_its_classifier_and_goes_on_with_no_other(tmp_path: Path) -> None:
    clf, other = put(tmp_path / "clf", card()), put(tmp_path / "other", card(ridge=2.0))
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


def test_a_run_without_one_cannot_be_gone_on_with_with_one(tmp_path: Path) -> None:
    run(**small(tmp_path / "run", None, limit=1))
    assert "classifier_digest" not in yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())
    with pytest.raises(RunMismatch, match="classifier_digest: was none"):
        run(**small(tmp_path / "run", put(tmp_path / "clf", card())))


def test_it_is_refused_where_it_is_of_no_use(tmp_path: Path) -> None:
    clf = put(tmp_path / "clf", card())
    for options, why in (
        ({"protocol": "selene", "task": "sample"}, "protocol 'selene' asks no classifier: leave --classifier out"),
        ({"classifier": tmp_path}, "no classifier there"),
        ({"encoder": "http://127.0.0.1:9/v1#m"}, f"it reads vectors of the encoder {HASHED}"),
    ):
        with pytest.raises(ConfigError, match=why):
            run(**{**small(tmp_path / "run", clf), **options})
    assert not (tmp_path / "run").exists()


def test_a_body_that_is_gone_is_noticed_before_the_run(tmp_path: Path) -> None:
    clf = put(tmp_path / "clf", card(body=Body(digest="0" * 12, base="b", iterations=None, epochs=1)))
    with pytest.raises(ConfigError, match="no sentence encoder there"):
        run(**small(tmp_path / "run", clf))


def invoke(*arguments: object) -> Any:
    return CliRunner(env={"COLUMNS": "150"}).invoke(app, [str(each) for each in arguments])


def test_the_command_trains_shows_and_says_when_it_is_done_already(
    planted: Callable[..., Path], session: Any, tmp_path: Path
) -> None:
    folder = planted(add_claims(session, 60), **FACTS)
    first = invoke("train-classifier", folder, "--out", tmp_path / "clf")
    assert first.exit_code == 0, first.output
    assert "the judges' bare verdict" in first.output
    assert "learning, and measuring on 5 held-out folds" in first.output
    second = invoke("train-classifier", folder, "--out", tmp_path / "clf", "--quiet", "--format", "json")
    assert second.exit_code == 0
    assert second.output.strip().startswith("{")
    third = invoke("train-classifier", folder, "--out", tmp_path / "clf")
    assert "holds this classifier already" in third.output
    assert [path.name for path in (tmp_path / "clf").iterdir()] == [CARD]
    refused = invoke("train-classifier", folder, "--out", tmp_path / "clf2", "--folds", "99")
    assert isinstance(refused.exception, ConfigError)
    assert "--folds" in str(refused.exception)
