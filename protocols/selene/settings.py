"""The settings of SELENE and of its baselines: one frozen tree, refused as a whole when parts contradict."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from moot.protocols.errors import ConfigError
from moot.protocols.settings import Settings, Share

DEFAULT_ENCODER = "hashed-ngrams-512-v1"
"""The encoder that the default `gate.tau_d` was chosen for."""

TAU_D = {DEFAULT_ENCODER: 0.35, "minilm-l6-v2@1b22665f3b9d": 0.3}
"""Default `gate.tau_d` by encoder; `docs/start/documents.md` explains how each was chosen."""


def _off_is_none(value: Any) -> Any:
    if value is False or (isinstance(value, str) and value.strip().lower() in {"none", "null", "off"}):
        return None
    if value is True:
        raise ValueError("a number is expected, or none to turn the test off")
    return value


def _none_is_a_word(value: Any) -> Any:
    return "none" if value is None else value


Threshold = Annotated[Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None, BeforeValidator(_off_is_none)]
"""A threshold of the gate; None (or `none`, `off`) turns its test off."""


class GateSettings(Settings):
    """When a case is debated (SELENE section 3.2, selective debate initiation).

    Attributes:
        when: `selective` decides by the signals; `always` debates every case; `never` debates none.
        tau_d: skip only if the disagreement D (eq. 2) is below; `none` turns the test off. Belongs to `tau_d_encoder`.
            If neither is set, it is 0.35 with `hashed-ngrams` and 0.3 with `minilm-l6-v2`, and the test is off with any
            other encoder.
        tau_m: skip only if the misalignment M (eq. 3) is below; `none` turns the test off.
        tau_p: skip only if the mean intrinsic probability is at least this; `none` turns the test off. The paper does
            not have this test. Without it, a case with low D, low M and c = p = 0.5 would be skipped, which the paper
            itself calls collective uncertainty.
        tau_d_encoder: name of the encoder that `tau_d` was chosen for; another encoder is refused.
        require_unanimity: skip only if all valid answers are equal, because embeddings hardly notice a negation.
        require_complete: skip only if every agent gave a valid answer, because a failed opening is not an agreement.
            False: the valid answers decide.
        intrinsic: source of p_i: `normalised`, the probability among the case's labels at the answer's position;
            `printed`, the paper's sigma(l) = p/(1+p), which never exceeds 0.5, so that with the default thresholds
            every case is debated; `resampled`, the share of equal answers among `resamples` further replies; `none`.
        if_untested: what happens if a test that is on cannot be made because a value is unknown: `debate` debates the
            case; with `ignore` the other tests decide, so that more cases are skipped than with the test. An unknown D
            always debates. With `intrinsic: none` no test of M or p is expected, and `ignore` holds for them.
        resamples: further replies per agent if `intrinsic` is `resampled`.
        embed_rationale: embed question, rationale and answer (eq. 1); False: without the rationale
            (Algorithm 1).
    """

    when: Literal["selective", "always", "never"] = "selective"
    tau_d: Threshold = TAU_D[DEFAULT_ENCODER]
    tau_m: Threshold = 0.25
    tau_p: Annotated[Share | None, BeforeValidator(_off_is_none)] = 0.6
    tau_d_encoder: str = DEFAULT_ENCODER
    require_unanimity: bool = True
    require_complete: bool = True
    intrinsic: Annotated[Literal["normalised", "printed", "none", "resampled"], BeforeValidator(_none_is_a_word)] = (
        "normalised"
    )
    if_untested: Literal["debate", "ignore"] = "debate"
    resamples: int = Field(default=5, ge=1, le=100)
    embed_rationale: bool = True

    @property
    def uses_intrinsic(self) -> bool:
        """Whether a decision of the gate can depend on the intrinsic probabilities."""
        tested = self.tau_m is not None or self.tau_p is not None
        return self.when == "selective" and self.intrinsic != "none" and tested

    @property
    def skips_untested(self) -> bool:
        """Whether a case may be skipped without the tests of M and p."""
        return self.if_untested == "ignore" or self.intrinsic == "none"


class DebateSettings(Settings):
    """How long agents discuss (section 3.3).

    Attributes:
        max_rounds: maximum number of rounds of a debate (T_max).
        epsilon: stop if |D(t-1) - D(t)| is below (the absolute value, as in Algorithm 1 and unlike eq. 6).
        failed_openings: `leave-out` leaves an agent whose opening failed out of the debate; `join` asks it in every
            round, with the others' answers, until it gives a valid one. The paper does not say.
        show_confidence: agents see the stated confidence of each last reply, their own and the others'; the paper's
            agents see only answers and reasoning.
    """

    max_rounds: int = Field(default=3, ge=1, le=50)
    epsilon: float = Field(default=0.02, ge=0.0, allow_inf_nan=False)
    failed_openings: Literal["leave-out", "join"] = "leave-out"
    show_confidence: bool = False


class RetrievalSettings(Settings):
    """Which documents are evidence beside the case's passage (R_q, section 3.4).

    Attributes:
        passages: n, the maximum number of chunks of the case's documents and the run's library that are retrieved for a
            case, by their cosine with its question and choices. Agents read them beside the passage, and judges as
            pieces of the evidence. 0: documents are not read.
    """

    passages: int = Field(default=5, ge=0, le=50)


class JudgingSettings(Settings):
    """How the final answers are judged (section 3.4, evidence-weighted self-consistency, EWSC).

    Attributes:
        method: `evidence-weighted`, over `k` perturbed evidence sets; `single`, one pass over the unchanged evidence;
            `none`, the majority of the agents without a judge.
        k: evidence variants, shared by all candidates of a case.
        repeats: passes of each judge on each variant.
        variants: `subset` samples at least half of the sentences, without a further call; with `paraphrase` a judge
            model rewrites them, each time in another manner, which takes `k` more calls per case. The paper allows both
            and used paraphrases in its experiments, so the default differs from these. A variant that repeats the
            evidence or another variant is left out. A single sentence has no subset: nothing is then perturbed, and the
            verdict says so.
        weighting: `printed` is the paper's formula, in which the weights cancel to the plain mean; `variance-penalised`
            is mean x exp(-lam Var); `per-variant` weights each variant by the spread of its own repeats and needs
            `repeats` of at least 2.
        lam: penalty on variance; at most 2, because a better score could lose above that.
        candidates: `distinct` final answers, or the reply of `every-agent` as printed.
        show_rationale: the judge also sees the reasoning behind a candidate.
    """

    method: Annotated[Literal["evidence-weighted", "single", "none"], BeforeValidator(_none_is_a_word)] = (
        "evidence-weighted"
    )
    k: int = Field(default=3, ge=1, le=50)
    repeats: int = Field(default=1, ge=1, le=50)
    variants: Literal["subset", "paraphrase"] = "subset"
    weighting: Literal["printed", "variance-penalised", "per-variant"] = "variance-penalised"
    lam: float = Field(default=1.0, ge=0.0, le=2.0, allow_inf_nan=False)
    candidates: Literal["distinct", "every-agent"] = "distinct"
    show_rationale: bool = False

    @model_validator(mode="after")
    def _repeats_for_weights(self) -> JudgingSettings:
        if self.weighting == "per-variant" and self.repeats < 2:
            raise ValueError("weighting `per-variant` needs `judging.repeats` of at least 2")
        return self


class VoteSettings(Settings):
    """How many answers a vote counts.

    Attributes:
        samples: independent answers per agent; above 1 only without a debate and without judges, to vote with the
            budget of a debate.
    """

    samples: int = Field(default=1, ge=1, le=1000)


class SeleneSettings(Settings):
    """All settings of SELENE; the baselines are other defaults of the same tree.

    Attributes:
        agents: number of agents that answer.
        answer_first: agents write the answer before its reasoning, as in the paper's prompts, so that its probability
            is the model's own. False: after the reasoning, which is chain of thought. That is often more accurate, but
            the answer is then nearly certain, and M is of little use.
        evidence: the documents that are evidence.
        gate, debate, judging, vote: the stages.
        audit_skipped: share of the skipped cases that are also debated, chosen by the case's seed; the verdict is still
            the consensus.
        audit_judging: judge the final answers of every case once more over `judging.k` variants of the kind
            `judging.variants`, outside the verdict, so that the same passes measure judge stability and flip rate for
            every system compared. It uses the paraphrases that the judging has made of the same evidence; where there
            are none, because the judging had one candidate or another method, it takes `judging.k` calls for them.
        both_branches: run the skip branch and the debate on every case, for calibration.
    """

    agents: int = Field(default=3, ge=1, le=1000)
    answer_first: bool = True
    evidence: RetrievalSettings = RetrievalSettings()
    gate: GateSettings = GateSettings()
    debate: DebateSettings = DebateSettings()
    judging: JudgingSettings = JudgingSettings()
    vote: VoteSettings = VoteSettings()
    audit_skipped: Share = 0.0
    audit_judging: bool = False
    both_branches: bool = False

    @model_validator(mode="after")
    def _parts_fit(self) -> SeleneSettings:
        never = self.gate.when == "never"
        if self.agents < 2 and not never:
            raise ValueError("a debate needs `agents` of at least 2, or set `gate.when` to never")
        if never and (self.audit_skipped or self.both_branches):
            raise ValueError("`audit_skipped` and `both_branches` need `gate.when` selective or always")
        if self.vote.samples > 1 and not self.votes_only:
            raise ValueError("`vote.samples` above 1 needs `gate.when` never and `judging.method` none")
        return self

    @property
    def votes_only(self) -> bool:
        """Whether independent answers are only counted: no debate and no judge."""
        return self.gate.when == "never" and self.judging.method == "none"

    @property
    def measures_disagreement(self) -> bool:
        """Whether D is computed, and so an encoder is asked."""
        return self.gate.when != "never"

    @property
    def needs_logprobs(self) -> bool:
        """Whether the gate needs token log-probabilities as configured."""
        return self.gate.uses_intrinsic and self.gate.intrinsic in ("normalised", "printed")

    def for_encoder(self, encoder: str) -> SeleneSettings:
        """These settings for a run with `encoder`: where none was set, `gate.tau_d` is the one that is known for it.

        Args:
            encoder: its name, as the run records it.

        Raises:
            ConfigError: when the gate would compare D with a threshold that was set for another encoder.
        """
        gate = self.gate
        if gate.tau_d is None or gate.tau_d_encoder == encoder:
            return self
        if not gate.model_fields_set & {"tau_d", "tau_d_encoder"}:
            fitted = gate.model_copy(update={"tau_d": TAU_D.get(encoder), "tau_d_encoder": encoder})
            return self.model_copy(update={"gate": fitted})
        if gate.when == "selective":
            raise ConfigError(
                f"gate.tau_d={gate.tau_d:g} was chosen for encoder {gate.tau_d_encoder!r}, not for {encoder!r}: "
                f"calibrate it with `moot calibrate`, then set gate.tau_d and gate.tau_d_encoder={encoder}"
            )
        return self
