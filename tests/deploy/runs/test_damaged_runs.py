"""Every file of a run's folder: a flipped bit and a cut are a fault that names the file, or change nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from damage import flipped
from planted_records import Command
from small_runs import sorted_rows
from summary_debate import Classifying, card, write_classifier_folder

from moot.actors.classifiers.card import read_card
from moot.actors.record.folder import RunFolder
from moot.actors.record.referenced_files import CLASSIFIER_CARD, referenced_files
from moot.actors.record.run_yaml import EDITED, REMARKS, SALVAGED, read_run_yaml
from moot.actors.record.salvage import salvage
from moot.actors.record.schema import TABLES
from moot.actors.record.verify import verify
from moot.deploy.results.figures.gate import run_warnings
from moot.deploy.results.figures.summary import summarise
from moot.deploy.runs.run import run
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.claims import CLAIM_LABELS, SUPPORTED
from moot.protocols.errors import ConfigError, RecordError

PROMPT = "prompts/selene/opening.j2"


@pytest.fixture(scope="module")
def debated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a template of its own, and with a budget, of which the record has a ledger."""
    place = tmp_path_factory.mktemp("debated")
    own = place / "own" / "selene" / "judge.j2"
    own.parent.mkdir(parents=True)
    shutil.copy(Path(run.__code__.co_filename).parents[2] / "protocols/prompts/selene/judge.j2", own)
    own.write_text(own.read_text() + "\n{# mine #}\n")
    run(task="sample", limit=2, engine="inline", prompts=place / "own", max_tokens=100_000, out=place / "run")
    return place / "run"


@pytest.fixture
def copied(debated: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(debated, tmp_path / "run"))


def content(folder: Path) -> Any:
    """All that readers take from a record."""
    rows = {table: sorted_rows(folder, table) for table in TABLES}
    record = RunFolder(folder)
    return read_run_yaml(record), record.epochs(), rows, summarise(folder).model_dump(exclude={"run"})


def harmed(data: bytes, random: Random, tries: int) -> Iterator[bytes]:
    for _ in range(tries):
        yield flipped(data, random.randrange(8 * len(data)))
        yield data[: random.randrange(len(data))]
    yield data[:-1]


def test_damage_is_a_fault_that_names_the_file_or_changes_nothing(copied: Path) -> None:
    whole = content(copied)
    random, silent = Random(1), []
    files = [file for file in sorted(copied.rglob("*")) if file.is_file() and file.stat().st_size]
    for file in files:
        data = file.read_bytes()
        for damaged in harmed(data, random, 0 if file.suffix == ".j2" else 2):
            file.write_bytes(damaged)
            faults = verify(RunFolder(copied)).faults
            if not any(file.name in fault for fault in faults) and (faults or content(copied) != whole):
                silent.append((file.relative_to(copied), damaged, faults))
        file.write_bytes(data)
    assert silent == []
    assert {file.name for file in files} >= {"run.yaml", "epochs.json", "limits.json", "opening.j2"}


def test_a_finished_run_of_which_nothing_is_left_is_not_whole(copied: Path) -> None:
    for file in copied.glob("*/e0001*"):
        file.unlink()
    (fault,) = verify(RunFolder(copied)).faults
    assert "2 cases are finished" in fault
    with pytest.raises(RecordError, match="nothing of it is left"):
        summarise(copied)


def test_every_flipped_bit_of_a_template_is_found(copied: Path) -> None:
    data, settings = (copied / PROMPT).read_bytes(), read_run_yaml(RunFolder(copied))
    for bit in range(0, 8 * len(data), 61):
        (copied / PROMPT).write_bytes(flipped(data, bit))
        (fault,) = (each for each in referenced_files(copied, settings) if each.fault)
        assert fault.name == PROMPT


def test_damage_of_a_classifiers_card_is_found(tmp_path: Path) -> None:
    case = {"id": "c", "question": "a figure differs", "labels": list(CLAIM_LABELS), "gold": SUPPORTED}
    classifier = write_classifier_folder(tmp_path / "classifier", card())
    out = run(task=[case], protocol=Classifying(), classifier=classifier, engine="inline", out=tmp_path / "run").path
    data, settings, random = (out / CLASSIFIER_CARD).read_bytes(), read_run_yaml(RunFolder(out)), Random(1)
    for damaged in (*harmed(data, random, 100), json.dumps(json.loads(data) | {"digest": "0" * 32}).encode()):
        (out / CLASSIFIER_CARD).write_bytes(damaged)
        if not any(each.fault for each in referenced_files(out, settings) if each.name == CLASSIFIER_CARD):
            assert read_card(out) == card(), "only blanks may differ"
    assert any(CLASSIFIER_CARD in fault for fault in verify(RunFolder(out)).faults)


def _changed(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"x")


@pytest.mark.parametrize("harm", [_changed, Path.unlink])
def test_a_template_of_this_version_is_written_again(harm: Callable[[Path], object], copied: Path) -> None:
    before = (copied / PROMPT).read_bytes()
    harm(copied / PROMPT)
    (fault,) = verify(RunFolder(copied)).faults
    assert PROMPT in fault
    assert "--salvage" in fault
    assert salvage(RunFolder(copied)) == [f"{PROMPT}: written again"]
    assert (copied / PROMPT).read_bytes() == before
    assert verify(RunFolder(copied)).faults == []
    assert (copied / "damaged" / PROMPT).exists() == (harm is _changed)


def test_a_template_of_a_persons_own_is_restored_by_that_person(copied: Path) -> None:
    own = copied / "prompts/selene/judge.j2"
    own.unlink()
    assert salvage(RunFolder(copied)) == []
    (fault,) = verify(RunFolder(copied)).faults
    assert fault == f"{own}: it is missing: restore it from a copy"


def test_a_template_that_is_too_many_is_a_fault(copied: Path) -> None:
    (copied / "prompts/selene/openinf.j2").write_text("x")
    (fault,) = verify(RunFolder(copied)).faults
    assert "openinf.j2: run.yaml names no such template" in fault


def edit(run_yaml: Path, old: str, new: str, *, says_so: bool) -> None:
    """As a person does in an editor."""
    text = run_yaml.read_text().replace(old, new)
    run_yaml.write_text(text[:8] + "edited" + text[16:] if says_so else text)


def test_an_edit_is_said_and_stays_said_after_the_next_session(copied: Path, command: Command) -> None:
    own = copied.parent / "own"
    shutil.copytree(copied / "prompts", own)
    edit(copied / "run.yaml", "max_open: 200", "max_open: 100", says_so=True)
    assert summarise(copied).warnings == [REMARKS[EDITED]]
    run(copied / "run.yaml", limit=3, prompts=own, out=copied)
    assert (copied / "run.yaml").read_text()[8:14] != "edited"
    assert summarise(copied).warnings == [REMARKS[EDITED]]
    assert verify(RunFolder(copied)).faults == []
    for shows in ("show", "verify"):
        assert REMARKS[EDITED] in " ".join(command(shows, str(copied))[1].split())


def test_a_damaged_run_yaml_is_refused_as_a_configuration_and_by_all_readers(copied: Path, command: Command) -> None:
    edit(copied / "run.yaml", "seed: 0", "seed: 1", says_so=False)
    with pytest.raises(ConfigError, match=r"run\.yaml is damaged, or was edited"):
        RunConfig.build(copied / "run.yaml")
    for arguments in (["show"], ["verify"], ["run", "--engine", "inline", "--out"], ["report"]):
        code, out, err = command(*arguments, str(copied))
        assert (code, "is damaged, or was edited" in out + err) == (2, True), arguments
        assert "Traceback" not in err


@pytest.mark.parametrize("start", ["as it is", "without its first line"])
def test_a_copy_elsewhere_is_a_configuration_like_any(start: str, copied: Path, tmp_path: Path) -> None:
    mine = tmp_path / "run.yaml"
    shutil.copy(copied / "run.yaml", mine)
    edit(mine, "seed: 0", "seed: 1", says_so=False)
    if start != "as it is":
        mine.write_text(mine.read_text().partition("\n")[2])
    config = RunConfig.build(mine)
    assert (config.seed, config.limit) == (1, 2)


@pytest.mark.parametrize(
    ("key", "value"), [("price_table", "{m: {input: x}}"), ("sessions", "[{unsettled: {usd: x}}]")]
)
def test_an_edit_to_nonsense_is_an_error_that_names_the_key(key: str, value: str, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(f"schema_version: 1\nmodels: {{agent: m}}\n{key}: {value}\n")
    with pytest.raises(RecordError, match=rf"run\.yaml: `{key}"):
        summarise(tmp_path)


def test_a_lost_run_yaml_is_an_error_and_its_record_is_adopted_by_no_other_run(copied: Path) -> None:
    (copied / "run.yaml").unlink()
    with pytest.raises(RecordError, match=r"its run.yaml is lost"):
        verify(RunFolder(copied))
    for folder in ("tables", "none"):
        if folder == "none":  # as after a kill: no tables, only a journal
            for table in TABLES:
                shutil.rmtree(copied / table, ignore_errors=True)
        with pytest.raises(ConfigError, match=r"its run.yaml is lost"):
            run(task="sample", limit=2, engine="inline", seed=7, out=copied)


def test_what_was_salvaged_stays_said(debated: Path, copied: Path) -> None:
    next(iter((copied / "events").iterdir())).unlink()
    salvage(RunFolder(copied))
    again = run(task="sample", limit=3, engine="inline", prompts=debated.parent / "own", max_tokens=100_000, out=copied)
    assert REMARKS[SALVAGED] in run_warnings(again.path)
    assert REMARKS[SALVAGED] in verify(RunFolder(copied)).remarks


def test_a_damaged_ledger_is_set_aside(copied: Path) -> None:
    (copied / "limits.json").write_bytes(b"{")
    assert any("limits.json" in line for line in salvage(RunFolder(copied)))
    assert verify(RunFolder(copied)).faults == []
