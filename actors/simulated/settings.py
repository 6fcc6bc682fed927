"""Settings of the simulated model, and the parser of specs such as `simulated?competence=0.9`."""

from __future__ import annotations

from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.validation_messages import explain_error


class SimulatedSettings(BaseModel):
    """Behaviour of the simulated agents and judges.

    Attributes:
        competence: mean probability, over questions, that an independent answer is right.
        calibration: 1 states the belief itself as confidence; towards 0 confidence is noisier and too high, most of all
            where belief is low.
        stubbornness: resistance to the others' answers; at 1 an agent never yields to them.
        judge_noise: standard deviation of a judge's score around the evidence's support; under a rubric, the
            probability that a score is one level off, or that a flag is missed.
        reasoning_words: length of a reasoning trace in words. A section of an argument has at least about 30.
        hallucination_rate: share of the agents' replies whose reasoning contains a claim that neither question nor
            passage supports.
        contentiousness_effect: strength of the effect of the prompt's contentiousness on stubbornness and wording; at 0
            there is none.
        confidence_signal: strength of the link between an argument's quality and its token probabilities; 0: no link.
        unclear_rate: share of the messages of a debate about a claim without AGREE or DENY.
        latency_ms: latency of every reply of the embedded model; a server has a latency of its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    competence: float = Field(default=0.78, ge=0.0, le=1.0)
    calibration: float = Field(default=0.85, ge=0.0, le=1.0)
    stubbornness: float = Field(default=0.5, ge=0.0, le=1.0)
    judge_noise: float = Field(default=0.12, ge=0.0, le=1.0)
    reasoning_words: int = Field(default=40, ge=1, le=2000)
    hallucination_rate: float = Field(default=0.0, ge=0.0, le=1.0)
    contentiousness_effect: float = Field(default=0.5, ge=0.0, le=1.0)
    confidence_signal: float = Field(default=0.5, ge=0.0, le=1.0)
    unclear_rate: float = Field(default=0.0, ge=0.0, le=1.0)
    latency_ms: float = Field(default=0.0, ge=0.0, le=3.6e6)

    @classmethod
    def from_query(cls, spec: str) -> SimulatedSettings:
        """Parses settings from a model spec, or from the part after the question mark.

        Raises:
            ConfigError: a setting is unknown, repeated, malformed or out of range.

        >>> SimulatedSettings.from_query("simulated?competence=0.9&stubbornness=0.2").competence
        0.9
        """
        head, mark, query = spec.partition("?")
        if not mark and "=" in spec:
            head, query = "", spec
        if head not in ("", "simulated"):
            raise ConfigError(f"model {spec!r}: expected `simulated` or `simulated?NAME=VALUE&...`")
        values: dict[str, str] = {}
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
        except ValueError as error:
            raise ConfigError(f"model {spec!r}: {error}; expected NAME=VALUE&...") from error
        for name, value in pairs:
            if name not in cls.model_fields:
                raise unknown_name("setting of `simulated`", name, cls.model_fields)
            if name in values:
                raise ConfigError(f"model {spec!r}: `{name}` is given twice")
            values[name] = value
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise ConfigError(f"model {spec!r}: `{where}`: {explain_error(first)}") from error
