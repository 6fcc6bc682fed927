"""A pilot's debates as the simulation runs them: plain lists, made once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.deploy.planning.pilot import Debate, Pilot

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """One debate; lists by call.

    Attributes:
        model, gap_s, busy_s, requests, reserved: see `Step`.
        used: tokens as a limit on tokens counts them in the end: what was reserved where the server did not say.
        waits: of how many replies a call waits.
        frees: the calls that wait for its reply.
        first: calls that wait for none.
        closing_s: see `Debate`.
    """

    model: list[int]
    gap_s: list[float]
    busy_s: list[float]
    requests: list[int]
    reserved: list[int]
    used: list[int]
    waits: list[int]
    frees: list[list[int]]
    first: list[int]
    closing_s: float


@dataclass(frozen=True, slots=True)
class Programme:
    """All debates of a pilot, and by debate what each takes.

    Attributes:
        calls, alone_s: by debate: calls, and seconds with nothing to wait for.
        requests, tokens, busy_s: by debate and model.
    """

    parts: tuple[Part, ...]
    models: int
    calls: Floats
    alone_s: Floats
    requests: Floats
    tokens: Floats
    busy_s: Floats


def programme_of(pilot: Pilot) -> Programme:
    """The debates of a pilot, ready to be simulated."""
    parts = tuple(_part(debate) for debate in pilot.debates)
    by_model = {name: np.zeros((len(parts), len(pilot.models))) for name in ("requests", "used", "busy_s")}
    for row, part in enumerate(parts):
        for name, table in by_model.items():
            np.add.at(table[row], part.model, getattr(part, name))
    return Programme(
        parts=parts,
        models=len(pilot.models),
        calls=np.array([len(part.model) for part in parts], float),
        alone_s=np.array([debate.alone_s for debate in pilot.debates]),
        requests=by_model["requests"],
        tokens=by_model["used"],
        busy_s=by_model["busy_s"],
    )


def _part(debate: Debate) -> Part:
    frees: list[list[int]] = [[] for _ in debate.steps]
    for number, step in enumerate(debate.steps):
        for before in step.after:
            frees[before].append(number)
    told = [(step.prompt, step.completion) for step in debate.steps]
    return Part(
        model=[step.model for step in debate.steps],
        gap_s=[step.gap_s for step in debate.steps],
        busy_s=[step.busy_s for step in debate.steps],
        requests=[step.requests for step in debate.steps],
        reserved=[step.reserved for step in debate.steps],
        used=[
            step.reserved if prompt is None or completion is None else prompt + completion
            for step, (prompt, completion) in zip(debate.steps, told, strict=True)
        ],
        waits=[len(step.after) for step in debate.steps],
        frees=frees,
        first=[number for number, step in enumerate(debate.steps) if not step.after],
        closing_s=debate.closing_s,
    )
