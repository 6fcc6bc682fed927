"""What a pilot says of its debates: their calls, in which order, how long each took and what it used."""

from __future__ import annotations

from dataclasses import dataclass

from moot.actors.models.prices import Price

FEW = 20
"""A pilot of fewer debates says little of the rare long ones."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a debate.

    Attributes:
        model: number of its model in `Pilot.models`.
        after: numbers of the calls of its debate whose replies it waits for.
        gap_s: from the last of these replies, or the debate's begin, until an agent takes it up.
        busy_s: how long it was under way, retries included, waits for leave and after 429s not.
        requests: sent to the server, retries included.
        prompt, completion: tokens; None when the server did not say.
        reserved: tokens that a limit on tokens holds back while it is under way.
    """

    model: int
    after: tuple[int, ...]
    gap_s: float
    busy_s: float
    requests: int
    prompt: int | None
    completion: int | None
    reserved: int


@dataclass(frozen=True, slots=True)
class Debate:
    """A case of the pilot; the steps are in the order in which their replies came.

    Attributes:
        closing_s: of the time from its opening to its verdict what no call accounts for.
        unconfirmed_tokens: at most so many beyond `steps`, in attempts that the server may have billed.
    """

    case_id: str
    steps: tuple[Step, ...]
    closing_s: float
    failed: bool
    skipped: bool
    unconfirmed_tokens: int

    @property
    def alone_s(self) -> float:
        """How long it takes with nothing to wait for but its own replies: its critical path."""
        ended: list[float] = []
        for step in self.steps:
            ready = max((ended[before] for before in step.after), default=0.0)
            ended.append(ready + step.gap_s + step.busy_s)
        return max(ended, default=0.0) + self.closing_s


@dataclass(frozen=True, slots=True)
class Pilot:
    """A pilot's debates and what a reader must know of them.

    Attributes:
        name: what users call its record: its folder, or its URI.
        models: names, as `Step.model` numbers them; prices: of each, None when it is not known.
        log_probabilities: whether any were asked for.
        simulated: whether a model was simulated; in_process: whether all answered in the run's own processes.
        sampled_from: how many debates could have been taken; more than `debates` in a large pilot.
        unfinished, with_reused, later_attempts: debates left out: without a verdict, with replies of another run, and
            second attempts at failed cases.
        shared: replies that several cases share; each is counted with one of the debates that were open then.
        waits_unknown: calls of a record from before waits were written down.
        interrupted: gaps in debates that a new session or a person's decision falls into, which count as none.
        under_way: most calls that were under way at once, over all models.
    """

    name: str
    protocol: str
    task: str
    engine: str
    placement: str
    max_open: int | None
    models: tuple[str, ...]
    prices: tuple[Price | None, ...]
    debates: tuple[Debate, ...]
    log_probabilities: bool
    simulated: bool
    in_process: bool
    sampled_from: int
    unfinished: int
    with_reused: int
    later_attempts: int
    shared: int
    waits_unknown: int
    interrupted: int
    under_way: int
