"""The gate as a table of signals and decisions."""

from __future__ import annotations

import numpy as np
import pytest

from moot.deploy.results.protocols.selene import REASONS
from moot.protocols.selene.agent_state import AgentState
from moot.protocols.selene.gate import GateSignals, decide, gate_event, signals_of
from moot.protocols.selene.settings import GateSettings


def signals(
    d: float | None = 0.03,
    m: float | None = 0.05,
    p: float | None = 0.95,
    *,
    equal: bool = True,
    complete: bool = True,
    p_of: tuple[float | None, ...] = (),
) -> GateSignals:
    return GateSignals(d, m, p, 0.9, equal, intrinsic=p_of, complete=complete)


@pytest.mark.parametrize(
    ("seen", "gate", "reasons"),
    [
        # Everest (appendix C.1): D = .03, M = .05.
        (signals(), {}, ("all_tests_passed",)),
        # Penguins (appendix C.1): D = .48, M = .42, one agent answers otherwise.
        (signals(0.48, 0.42, equal=False), {}, ("disagreement", "misalignment", "not_unanimous")),
        # Low D and low M at c = p = .5 is collective uncertainty.
        (signals(p=0.5), {}, ("low_intrinsic",)),
        (signals(p=0.5), {"tau_p": None}, ("all_tests_passed",)),
        # Thresholds are strict for D and M, not for p.
        (signals(d=0.35), {}, ("disagreement",)),
        (signals(m=0.25), {}, ("misalignment",)),
        (signals(p=0.6), {}, ("all_tests_passed",)),
        (signals(equal=False), {}, ("not_unanimous",)),
        (signals(equal=False), {"require_unanimity": False}, ("all_tests_passed",)),
        # An opening that failed agrees with nobody.
        (signals(complete=False), {}, ("incomplete",)),
        (signals(equal=False, complete=False), {}, ("not_unanimous", "incomplete")),
        (signals(complete=False), {"require_complete": False}, ("all_tests_passed",)),
        (signals(complete=False), {"require_unanimity": False}, ("incomplete",)),
        (signals(d=1.0), {"tau_d": None}, ("all_tests_passed",)),
        (signals(m=1.0), {"tau_m": None}, ("all_tests_passed",)),
        (signals(), {"when": "always"}, ("always",)),
        (signals(d=1.0), {"when": "never"}, ("never",)),
    ],
)
def test_decisions(seen: GateSignals, gate: dict[str, object], reasons: tuple[str, ...]) -> None:
    decision = decide(seen, GateSettings.model_validate(gate))
    assert decision.reasons == reasons
    assert decision.skip == (reasons in {("all_tests_passed",), ("never",)})
    assert decision.untested == ()


D, M, P = "disagreement", "misalignment", "low_intrinsic"
IGNORE, NONE = {"if_untested": "ignore"}, {"intrinsic": "none"}


@pytest.mark.parametrize(
    ("seen", "gate", "untested", "reasons"),
    [
        (signals(m=None), {}, (M,), ("misalignment_unknown",)),
        (signals(p=None), {}, (P,), ("low_intrinsic_unknown",)),
        (signals(m=None, p=None), {}, (M, P), ("misalignment_unknown", "low_intrinsic_unknown")),
        (signals(0.5, None), {}, (M,), (D, "misalignment_unknown")),
        (signals(m=None), {"tau_m": None}, (), ("all_tests_passed",)),
        (signals(m=None), IGNORE, (M,), ("known_tests_passed", "misalignment_unknown")),
        (signals(m=None), NONE, (M,), ("known_tests_passed", "misalignment_unknown")),
        (signals(m=None, equal=False), IGNORE, (M,), ("not_unanimous",)),
        # An unknown D debates in any case.
        (signals(d=None), {}, (D,), ("disagreement_unknown",)),
        (signals(d=None), IGNORE, (D,), ("disagreement_unknown",)),
        (signals(d=None, m=None), NONE, (D, M), ("disagreement_unknown",)),
        # The p of some agents can fail a test of all, and not pass it.
        (signals(p_of=(0.9, None)), {}, (M, P), ("misalignment_unknown", "low_intrinsic_unknown")),
        (signals(m=0.3, p_of=(0.9, None)), {}, (P,), (M, "low_intrinsic_unknown")),
        (signals(p_of=(0.9, None)), IGNORE | {"tau_p": None}, (M,), ("known_tests_passed", "misalignment_unknown")),
        (signals(p_of=(0.9, 0.9)), {}, (), ("all_tests_passed",)),
        (signals(m=None), {"when": "never"}, (), ("never",)),
    ],
)  # fmt: skip
def test_a_test_that_cannot_be_made_is_a_reason(
    seen: GateSignals, gate: dict[str, object], untested: tuple[str, ...], reasons: tuple[str, ...]
) -> None:
    decision = decide(seen, GateSettings.model_validate(gate))
    assert (decision.untested, decision.reasons) == (untested, reasons)
    assert decision.skip == (reasons[0] in {"all_tests_passed", "known_tests_passed", "never"})
    assert set(reasons) <= set(REASONS)


def test_sure_and_unsure_agents_at_several_stages_are_no_reason_to_skip() -> None:
    """Three agents at p = .2 and c = .95 debate, whichever stage one of them is at; each p stays on record."""
    for stages in (("raw", "raw", "raw"), ("raw", "raw", "masked")):
        stands = [AgentState(i, f"agent/{i}", "Yes", "a", 0.95, 0.2, stage) for i, stage in enumerate(stages)]
        seen = signals_of(stands, np.ones((3, 2)), 3)
        decision = decide(seen, GateSettings())
        assert not decision.skip
        assert gate_event(seen, decision, GateSettings()).intrinsic == [0.2, 0.2, 0.2]
    assert decision.reasons == ("not_comparable",)
    assert decide(seen, GateSettings(tau_m=None, tau_p=None)).skip


def test_printed_reading_makes_calibrated_confidence_look_misaligned() -> None:
    p = 0.95
    stands = [AgentState(i, f"agent/{i}", "Yes", "because", 0.95, p / (1 + p)) for i in range(3)]
    seen = signals_of(stands, np.ones((3, 2)), 3)
    assert seen.misalignment == pytest.approx(0.95 - 0.4872, abs=1e-4)
    gate = GateSettings(intrinsic="printed", tau_p=None)
    assert decide(seen, gate).reasons == ("misalignment",)


def test_signals_leave_unknown_out_and_record_no_nan() -> None:
    stands = [AgentState(0, "agent/0", "Yes", "a", 0.9, None), AgentState(1, "agent/1", "Yes", "a", 0.8, 0.7)]
    seen = signals_of(stands, np.array([[1.0, 0.0], [0.0, 1.0]]), 2)
    assert (seen.disagreement, seen.mean_intrinsic) == (1.0, 0.7)
    assert seen.misalignment == pytest.approx(0.1)
    unknown = signals_of([stands[0], stands[0]], np.ones((2, 2)), 2)
    assert unknown.misalignment is None
    event = gate_event(unknown, decide(unknown, GateSettings()), GateSettings())
    assert event.m is None
    assert event.p is None
    assert event.intrinsic == [None, None]
    assert event.untested == ["misalignment", "low_intrinsic"]


@pytest.mark.parametrize(
    ("stages", "pooled"),
    [
        (("before", "before"), True),
        (("before", "after"), False),
        (("before", "raw"), False),
        (("masked", "masked"), True),
        (("unknown", "unknown"), True),
        (("masked", "raw"), False),
        (("masked", "unknown"), False),
        (("unknown", "raw"), False),
        (("unknown", "before"), False),
    ],
)
def test_probabilities_of_several_stages_make_no_figure_together(stages: tuple[str, str], pooled: bool) -> None:
    stands = [AgentState(i, f"agent/{i}", "Yes", "a", 0.9, 0.7, stage) for i, stage in enumerate(stages)]
    seen = signals_of(stands, np.ones((2, 2)), 2)
    assert (seen.mean_intrinsic is not None, seen.misalignment is not None) == (pooled, pooled)
    one_unknown = signals_of([stands[0], AgentState(1, "agent/1", "Yes", "a", 0.9, None)], np.ones((2, 2)), 2)
    assert one_unknown.mean_intrinsic == 0.7
