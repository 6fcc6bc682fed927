"""Pilots that no run has made, with what the planning tests need to know of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from moot.actors.models.prices import Price
from moot.deploy.planning.pilot import Debate, Pilot, Step
from moot.deploy.planning.resampled import resampled

SERVER = "http://127.0.0.1:1/v1#made"


@contextmanager
def short_plans() -> Iterator[None]:
    """Plans from an eighth of the calls and a fifth of the resamples: what holds of them holds of any number."""
    with pytest.MonkeyPatch.context() as patch:
        for name, calls in (("_CALLS", 10_000), ("_CALLS_RELAXED", 5_000)):
            patch.setattr(f"moot.deploy.planning.plan.{name}", calls)
        patch.setattr("moot.deploy.planning.plan.resampled", partial(resampled, resamples=19, most_calls=300))
        yield


def step(after: tuple[int, ...] = (), busy_s: float = 1.0, **others: int | float | None) -> Step:
    known = Step(model=0, after=after, gap_s=0.0, busy_s=busy_s, requests=1, prompt=200, completion=50, reserved=600)
    return replace(known, **others)  # type: ignore[arg-type]


def debate(number: int, steps: tuple[Step, ...], **others: bool) -> Debate:
    known = Debate(f"case-{number}", steps, 0.0, failed=False, skipped=False, unconfirmed_tokens=0)
    return replace(known, **others)  # type: ignore[arg-type]


def made(debates: tuple[Debate, ...], price: Price | None = None, under_way: int = 200) -> Pilot:
    return Pilot(
        name="runs/made",
        protocol="selene",
        task="sample",
        engine="ray",
        placement="packed",
        max_open=200,
        models=(SERVER,),
        prices=(price,),
        debates=debates,
        log_probabilities=False,
        simulated=False,
        in_process=False,
        sampled_from=len(debates),
        unfinished=0,
        with_reused=0,
        later_attempts=0,
        shared=0,
        waits_unknown=0,
        interrupted=0,
        under_way=under_way,
    )


def usual(count: int = 60, seed: int = 3) -> Pilot:
    """Three openings at once, then none to three rounds and a judge; one debate in ten fails."""
    random = np.random.default_rng(seed)
    debates = []
    for number in range(count):
        steps = [step(busy_s=random.uniform(0.5, 1.5)) for _ in range(3)]
        before: tuple[int, ...] = (0, 1, 2)
        for _ in range(rounds := int(random.integers(0, 4))):
            prompt = int(random.integers(300, 900))
            steps.append(step(before, random.uniform(0.5, 2.5), prompt=prompt, reserved=prompt + 400))
            before = (len(steps) - 1,)
        debates.append(debate(number, tuple(steps), skipped=rounds == 0, failed=number % 10 == 9))
    return made(tuple(debates), Price(input=1.0, output=4.0))
