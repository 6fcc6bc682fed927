"""The settings of EVINCE: one frozen tree, refused as a whole when parts contradict."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from moot.protocols.contentiousness import FLOOR, START
from moot.protocols.crit.settings import CritSettings
from moot.protocols.settings import Settings, Share

Schedule = Literal["adaptive", "exponential", "linear", "fixed", "random", "none", "ensemble"]


def _none_is_a_word(value: Any) -> Any:
    return "none" if value is None else value


class EvinceContentiousnessSettings(Settings):
    """How contentiousness runs; see `moot.protocols.evince.schedule`.

    Attributes:
        start: contentiousness of the first round.
        floor: the lowest contentiousness of any schedule; `linear` and `exponential` reach it in the last round.
        far: `adaptive` does not change the level while the disagreement is at least this.
        uncertain: `adaptive` may raise the level only while the normalised entropy of the mixture is at least this.
    """

    start: Share = START
    floor: Share = FLOOR
    far: Share = 0.5
    uncertain: Share = 0.75

    @model_validator(mode="after")
    def _floor_below_start(self) -> EvinceContentiousnessSettings:
        if self.floor > self.start:
            raise ValueError(f"`kappa.floor` {self.floor:g} lies above `kappa.start` {self.start:g}")
        return self


class QualityGateSettings(Settings):
    """When an argument is withheld from the other sides (the setting `gate` turns it off).

    An argument passes when its CRIT score is at least `max(threshold, mean of the earlier scores - margin)`: the bar
    rises with what the debate has shown it can do. Earlier scores are those of earlier rounds; in the opening exchange
    there are none.

    Attributes:
        threshold: lowest CRIT score with which an argument passes, in [0, 1].
        margin: how far an argument's score may be below the mean of the earlier scores.
    """

    threshold: Share = 0.4
    margin: Share = 0.15


class EvinceSettings(Settings):
    """All settings of EVINCE.

    Attributes:
        agents: number of sides; the source has two. With three or more, divergences are means over the pairs. With one
            there is no debate and no judge: its distribution is the verdict, so that a pair can be compared with its
            better member.
        order: which side opens: the first (`given`), the last (`reversed`), or one of these two by the case's seed
            (`seeded`), so that the opening side is independent of the model.
        top_k: number of labels that each side names with a probability.
        answer_first: whether a side states its distribution before its arguments, as the source asks for it.
        history: what a side sees of the others: the whole debate (`full`, the source's text), or only their last
            `distribution` (its figure 7.1).
        max_rounds: maximum number of rounds after the opening exchange; a second debate, over retrieved documents, has
            as many more.
        schedule: schedule of contentiousness: `adaptive`, `exponential`, `linear`, `fixed`, `random` (to measure its
            effect), `none` (a debate without it) or `ensemble` (no debate: the average of one answer of each side).
        kappa: the levels of the schedule.
        gate: whether arguments of low quality are withheld from the other sides.
        quality: the threshold of that gate.
        crit: how judges read arguments; see `moot.protocols.crit`. They read every turn, so they do not read reasons
            deeper by default.
        crit_turns: the turns that judges read: `every` (which the gate needs), the `last` of each side (its score is
            the side's weight in the consensus), or `none`.
        stop: `converged` ends a debate whose sides no longer move (see `moot.protocols.convergence`); `printed` applies
            the rule of figure 7.1.
        epsilon: total variation below which a side counts as unmoved; with either rule, the verdict says whether the
            sides had converged.
        tau: Jensen-Shannon divergence in nats below which unmoved sides have converged; otherwise they have stalled.
        printed_epsilon: bound of the rule of figure 7.1.
        ground: distance between labels for the Wasserstein distance: `nominal` 0/1, or `embedding` of their texts.
        kl_epsilon: e in the smoothing `(q + e) / (1 + k e)` of every probability q of the second distribution of a
            Kullback-Leibler divergence or a cross-entropy, with k labels, "(other)" included; the record has the number
            of pairs that would be infinite without it.
        retrieve: number of the case's documents, and number of passages of the run's library, for a second debate if
            the consensus is still uncertain; 0 for no second debate.
        retrieve_from: normalised entropy of the consensus from which there is a second debate.
        follow_ups: ask what else to find out: if the consensus is `unsure`, `always` or `never`.
        unsure_below: a confidence below this is unsure. The source names 0.5 to 0.6, but a lower confidence needs
            questions even more.
    """

    agents: int = Field(default=2, ge=1, le=20)
    order: Literal["given", "reversed", "seeded"] = "given"
    top_k: int = Field(default=5, ge=1, le=50)
    answer_first: bool = True
    history: Literal["full", "distribution"] = "full"
    max_rounds: int = Field(default=3, ge=1, le=50)
    schedule: Annotated[Schedule, BeforeValidator(_none_is_a_word)] = "adaptive"
    kappa: EvinceContentiousnessSettings = EvinceContentiousnessSettings()
    gate: bool = True
    quality: QualityGateSettings = QualityGateSettings()
    crit: CritSettings = CritSettings(max_depth=0)
    crit_turns: Annotated[Literal["every", "last", "none"], BeforeValidator(_none_is_a_word)] = "every"
    stop: Literal["converged", "printed"] = "converged"
    epsilon: Share = 0.05
    tau: float = Field(default=0.05, ge=0.0, allow_inf_nan=False)
    printed_epsilon: float = Field(default=0.01, gt=0.0, allow_inf_nan=False)
    ground: Literal["nominal", "embedding"] = "nominal"
    kl_epsilon: float = Field(default=1e-6, gt=0.0, le=0.1)
    retrieve: int = Field(default=3, ge=0, le=20)
    retrieve_from: Share = 0.75
    follow_ups: Literal["unsure", "always", "never"] = "unsure"
    unsure_below: Share = 0.6

    @model_validator(mode="after")
    def _parts_fit(self) -> EvinceSettings:
        if self.gate and self.debates and self.crit_turns != "every":
            raise ValueError("the gate reads every turn: set `gate` to off, or `crit_turns` to every")
        return self

    @property
    def debates(self) -> bool:
        """Whether the sides answer each other at all."""
        return self.schedule != "ensemble" and self.agents > 1

    @property
    def judged(self) -> bool:
        """Whether any turn is read by judges."""
        return self.crit_turns != "none" and self.agents > 1

    @property
    def unread(self) -> frozenset[str]:
        """The settings that have no effect beside the others."""
        if self.agents == 1:
            return frozenset(type(self).model_fields) - {"agents", "top_k", "answer_first"}
        idle = (
            (not self.debates, "order history max_rounds kappa gate quality stop epsilon tau printed_epsilon"),
            (not self.debates, "retrieve retrieve_from"),
            (self.schedule == "none", "kappa"),
            (not self.gate, "quality"),
            (not self.judged, "crit"),
            (self.stop == "converged", "printed_epsilon"),
            (not self.retrieve, "retrieve_from"),
            (self.follow_ups != "unsure", "unsure_below"),
        )
        return frozenset(name for holds, names in idle if holds for name in names.split())

    def effective(self) -> EvinceSettings:
        """These settings with what has no effect beside the others at its default: equal ones debate alike."""
        return self.model_copy(update={name: type(self).model_fields[name].default for name in self.unread})
