"""A panel of simulated judges with a noise for each member: the noisier one's scores vary more."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from moot.deploy.running.flags import parse_roles
from moot.deploy.running.run import run

PANEL = ("simulated?judge_noise=0.25", "simulated?judge_noise=0", "simulated?judge_noise=0.08")


@pytest.fixture(scope="module")
def spreads(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """By model, the root mean square over candidates of the standard deviation of a judge's passes."""
    out: Path = tmp_path_factory.mktemp("panel") / "run"
    settings = {"gate.when": "always", "judging.k": 1, "judging.repeats": 8}
    roles = parse_roles([f"judge={','.join(PANEL)}"])
    done = run(task="sample", limit=40, engine="inline", roles=roles, set=settings, out=out)
    passes: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for row in done.table("judgments").to_pylist():
        candidate = row["path"].split("/judge/")[0]
        passes[row["judge"], row["model"], row["case_id"], candidate].append(row["score"])
    assert {(judge, model) for judge, model, *_ in passes} == {(f"judge/{i}", model) for i, model in enumerate(PANEL)}
    passes = {key: scores for key, scores in passes.items() if len(scores) == 8}  # an only candidate gets one pass
    assert len(passes) >= 3 * 8
    return {
        model: float(np.sqrt(np.mean([np.var(scores, ddof=1) for key, scores in passes.items() if key[1] == model])))
        for model in PANEL
    }


def test_every_member_varies_as_its_own_noise_says(spreads: dict[str, float]) -> None:
    loud, silent, quiet = (spreads[model] for model in PANEL)
    assert silent == 0.0
    assert quiet == pytest.approx(0.08, rel=0.25)
    assert loud == pytest.approx(0.25, rel=0.25)
