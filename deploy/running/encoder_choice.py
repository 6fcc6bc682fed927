"""Which encoder `auto` is for a run: the recorded one, else one that fits what is embedded and what is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from moot.actors.encoders.minilm import HOW, MINILM, minilm_installed
from moot.actors.encoders.resolve import AUTO
from moot.deploy.running.bindings import is_simulated
from moot.deploy.running.config import RunConfig
from moot.deploy.running.recorded import recorded_encoder
from moot.protocols.selene.protocol import Selene
from moot.protocols.selene.settings import DEFAULT_ENCODER


def chosen_encoder(config: RunConfig, protocol: object, models: Sequence[str], folder: Path, reuse: Path | None) -> str:
    """The run's encoder, as it was named or, for `auto`, as it is chosen.

    What was installed since changes no run: one that has begun keeps its encoder, and one that reuses or replays
    another's replies takes that one's where D is compared, for another D would ask for other replies. A threshold for D
    that was set brings the encoder that it is for. Else it is the best that is installed where D compares what a real
    model wrote. The simulated model's texts are drawn from a few phrases, so that words
    are all there is to compare; and a library of documents, which may be large, is not embedded by a model unasked.

    Args:
        protocol: the protocol itself.
        models: of every member of every role.
        folder: the run's.
        reuse: the folder of the run whose replies it reuses; None for none.

    Raises:
        RecordError, ConfigError: as `recorded_encoder`.
    """
    if config.encoder != AUTO:
        return config.encoder
    settings = protocol.settings if isinstance(protocol, Selene) else None
    measured = settings is not None and settings.measures_disagreement
    recorded = recorded_encoder(folder, reuse, models) if measured else recorded_encoder(folder, None, ())
    if recorded is not None:
        return recorded
    gate = None if settings is None else settings.gate
    if gate is not None and "tau_d" in gate.model_fields_set and gate.tau_d_encoder == DEFAULT_ENCODER:
        return DEFAULT_ENCODER
    real = not any(map(is_simulated, models))
    return MINILM if measured and real and minilm_installed() else DEFAULT_ENCODER


def better_encoder() -> str:
    """How to embed meaning on this machine, for the end of a sentence."""
    return f"say --encoder {MINILM}" if minilm_installed() else f"{HOW}, then say --encoder {MINILM}"
