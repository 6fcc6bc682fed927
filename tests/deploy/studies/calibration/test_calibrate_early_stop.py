"""Early signals: a planted one is found with its direction and bound, and none is found where there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml
from gated_cases import CASES, _plant
from not_none import not_none
from planted_records import PlantedSession, Printed

from moot.actors.models.early_stop import EarlyStop
from moot.deploy.studies.calibration.early_stop import EarlySignal, calibrate_early_stop
from moot.deploy.studies.calibration.report import show_early_stop
from moot.metrics.confidence_features import window_statistic
from moot.metrics.detection import auroc
from moot.protocols.case import Reference
from moot.protocols.errors import ConfigError


@pytest.mark.parametrize(("shift", "keep"), [(-0.8, "above"), (0.8, "below")])
def test_a_planted_signal_is_found_with_its_direction(session: PlantedSession, shift: float, keep: str) -> None:
    _plant(session, shift)
    (signal,) = calibrate_early_stop(session.plant(), share=0.2).signals
    stop = not_none(signal.early_stop)
    assert (signal.works, stop.keep, stop.statistic) == (True, keep, "mean")
    assert (signal.auroc or 0.0) > 0.8
    assert not_none(signal.error_stopped) > not_none(signal.error_kept) + 0.3
    assert not_none(signal.difference_interval)[0] > 0.0
    assert EarlyStop.model_validate(yaml.safe_load(signal.role_yaml)["early_stop"]) == stop


def test_its_figures_are_those_of_a_plain_recomputation(session: PlantedSession) -> None:
    _plant(session, -0.5)
    found = calibrate_early_stop(session.plant(), seed=4, share=0.1)
    (signal,) = found.signals
    stop = not_none(signal.early_stop)
    assert signal.n_learning + signal.n_held_out == 2 * CASES
    held_out = [row for row in session.replies if _is_held_out(row["case_id"], seed=4)]
    wrong = np.array([row["answer"] == "No" for row in held_out])
    stopped = np.array([stop.stops(row["logprob"]) for row in held_out])
    assert (signal.n_held_out, signal.n_known) == (len(wrong), len(wrong))
    assert signal.error_stopped == pytest.approx(wrong[stopped].mean())
    assert signal.error_kept == pytest.approx(wrong[~stopped].mean())
    assert signal.share_stopped == pytest.approx(stopped.mean())
    windows = [np.array(row["logprob"], np.float32)[: stop.window] for row in held_out]
    area = auroc([float(window_statistic(window, stop.statistic)) for window in windows], wrong)
    assert signal.auroc == pytest.approx(1.0 - area if stop.keep == "above" else area)


def _is_held_out(case_id: str, seed: int) -> bool:
    digest = blake2b(f"{seed}/{case_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 < 0.5


@pytest.mark.slow
def test_no_signal_is_found_where_there_is_none(session: PlantedSession) -> None:
    works = 0
    for seed in range(20):
        fresh = session.new()
        _plant(fresh, 0.0, seed=seed)
        found = calibrate_early_stop(fresh.plant(), seed=seed)
        (signal,) = found.signals
        works += signal.works
        assert (signal.auroc_learning or 0.0) > 0.5, "the best of many looks good where it was chosen"
        if not signal.works:
            assert signal.role_yaml == ""
            assert any("leave early stop off" in warning for warning in found.warnings)
    assert works <= 2, "one in forty is to be expected"


def test_temperatures_and_models_are_never_pooled(session: PlantedSession) -> None:
    _plant(session, -0.8)
    for number, row in enumerate(session.replies):
        row |= {"temperature": None if number % 2 else 0.7, "model": "m" if number % 3 else "n"}
    found = calibrate_early_stop(session.plant())
    assert {(each.model, each.temperature) for each in found.signals} == {
        ("m", None), ("m", 0.7), ("n", None), ("n", 0.7)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stages", "held"),
    [(("masked", "raw"), (True, True)), (("unknown", "raw"), (True, True)), (("masked", "unknown"), (True, None))],
)
def test_stages_are_never_pooled_and_a_token_that_a_mask_forced_is_unknown(
    session: PlantedSession, stages: tuple[str, str], held: tuple[bool | None, ...]
) -> None:
    _plant(session, -0.8)
    for number, row in enumerate(session.replies):
        kind = number % 2
        row |= {"logprob_stage": stages[kind], "held": held[kind]}
        row["logprob"][0] = 0.0 if kind == 0 or stages[kind] == "unknown" else row["logprob"][0]
    found = calibrate_early_stop(session.plant())
    assert {each.stage: each.early_stop is not None for each in found.signals} == {stages[0]: False, stages[1]: True}
    assert found.left_out == {"with a token in the window that a schema may have forced": CASES}


def test_a_forced_token_behind_the_window_leaves_nothing_out(session: PlantedSession) -> None:
    _plant(session, -0.8, logprob_stage="masked")
    for number, row in enumerate(session.replies):
        row["logprob"][3 if number % 10 == 0 else -1] = 0.0
    found = calibrate_early_stop(session.plant())
    (signal,) = found.signals
    assert not_none(signal.early_stop).window > 3
    assert found.left_out == {"with a token in the window that a schema may have forced": 2 * CASES // 10}


def test_what_cannot_be_used_is_counted(session: PlantedSession) -> None:
    _plant(session, -0.8)
    session.replies[0] |= {"token": None, "logprob": None}
    session.replies[1]["logprob"][1] = float("nan")
    session.case("unlabelled", gold=None)
    session.reply("unlabelled", "opening/agent/0", 9, answer="Yes", token=["x"], logprob=[-1.0])
    session.reply("c3", "opening/agent/0~cut1", None, outcome="cut", token=["x"], logprob=[-1.0])
    found = calibrate_early_stop(session.plant())
    assert found.left_out == {
        "cannot be scored": 1,
        "replacing one that was stopped": 1,
        "without log-probabilities": 1,
    }
    assert sum(each.n_learning + each.n_held_out for each in found.signals) == 2 * CASES - 2


def test_replies_of_a_retry_without_a_verdict_are_not_used(session: PlantedSession) -> None:
    _plant(session, -0.8)
    session.replies += [{**row, "reply_id": f"{row['reply_id']}-again", "attempt": 1} for row in session.replies[:2]]
    found = calibrate_early_stop(session.plant())
    assert sum(each.n_learning + each.n_held_out for each in found.signals) == 2 * CASES


def test_a_run_without_log_probabilities_is_refused_with_what_to_do(session: PlantedSession) -> None:
    _plant(session, 0.0, token=None, logprob=None)
    with pytest.raises(ConfigError, match=r"300 .*`top_logprobs: 1`"):
        calibrate_early_stop(session.plant())
    with pytest.raises(ConfigError, match="judge"):
        calibrate_early_stop(session.plant(), role="judge")


@pytest.mark.parametrize("wrong", [{"holdout": 1.0}, {"share": 0.0}, {"share": 0.6}])
def test_arguments_out_of_range_are_refused(session: PlantedSession, wrong: dict[str, Any]) -> None:
    session.case("c0")
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        calibrate_early_stop(session.plant(), **wrong)


def test_too_few_replies_choose_nothing_and_the_reports_say_so(session: PlantedSession, printed: Printed) -> None:
    session.case("c0")
    session.reply("c0", "opening/agent/0", 9, answer="Yes", token=["x"] * 3, logprob=[-1.0] * 3, temperature=None)
    found = calibrate_early_stop(session.plant())
    assert found.signals[0].early_stop is None
    text = printed(show_early_stop, found)
    assert "none: too few replies" in text
    assert "leave early stop off" in text


def test_the_three_forms_say_the_same(session: PlantedSession, printed: Printed) -> None:
    _plant(session, -0.8)
    found = calibrate_early_stop(session.plant())
    (signal,) = found.signals
    told = json.loads(printed(show_early_stop, found, "json"))
    assert EarlySignal.model_validate(told["signals"][0]) == signal
    for form in ("text", "md"):
        text = printed(show_early_stop, found, form)
        assert signal.role_yaml in text
        assert f"{signal.auroc:.3f}" in text


def _add_replies(session: PlantedSession, count: int, draw: Callable[[], tuple[bool, float]]) -> None:
    """One reply a case of three tokens: whether it is wrong, and the log-probability of each token."""
    for number in range(count):
        wrong, logprob = draw()
        session.case(f"c{number}", gold="Yes")
        row: Any = {"temperature": 0.7, "answer": "No" if wrong else "Yes", "token": ["x"] * 3}
        session.reply(f"c{number}", "opening/agent/0", 9, logprob=[logprob] * 3, **row)


def test_a_signal_that_would_stop_the_right_ones_does_not_work(session: PlantedSession) -> None:
    """On the whole low means wrong, but the lowest tenth is nearly always right."""
    random = np.random.default_rng(5)

    def draw() -> tuple[bool, float]:
        level = float(random.random())
        return random.random() < (0.03 if level < 0.15 else 0.7 if level < 0.5 else 0.15), level - 2.0

    _add_replies(session, 600, draw)
    (signal,) = calibrate_early_stop(session.plant(), share=0.1).signals
    assert not_none(signal.auroc_interval)[0] > 0.5
    assert (signal.works, signal.role_yaml) == (False, "")


def test_a_bound_that_stops_nothing_does_not_work(session: PlantedSession) -> None:
    random = np.random.default_rng(6)

    def draw() -> tuple[bool, float]:
        wrong = random.random() < 0.4
        return wrong, 0.0 if random.random() < (0.9 if wrong else 0.6) else -1.0

    _add_replies(session, 400, draw)
    (signal,) = calibrate_early_stop(session.plant(), share=0.1).signals
    assert not_none(signal.early_stop).stops([-1.0] * 3) is False
    assert (signal.share_stopped, signal.error_stopped, signal.works) == (0.0, None, False)


def test_replies_are_scored_as_the_record_scored_them(session: PlantedSession) -> None:
    """As a label, `$5.00` would be wrong everywhere, and nothing could be distinguished."""
    _plant(session, -0.8)
    numbers = {"Yes": "$5.00", "No": "6"}
    for case, reply in enumerate(session.replies):
        session.replies[case] = {**reply, "answer": numbers[reply["answer"]]}
    reference = Reference(scoring="number")
    session.cases[:] = [msgspec.structs.replace(case, gold="5", reference=reference) for case in session.cases]
    (signal,) = calibrate_early_stop(session.plant(), share=0.2).signals
    assert (signal.works, (signal.auroc or 0.0) > 0.8) == (True, True)
