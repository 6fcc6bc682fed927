"""Signals as bytes, to cross between actors."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from moot.actors.record.signal_group import Group
from moot.actors.record.signals import GroupKey, Signals


def encode_signals(signals: Signals) -> bytes:
    """The signals as bytes."""
    return msgspec.msgpack.encode(list(signals.kept.items()), enc_hook=_plain)


def decode_signals(raw: bytes) -> Signals:
    """What `encode_signals` was given."""
    return Signals(dict(msgspec.msgpack.decode(raw, type=list[tuple[GroupKey, Group]], dec_hook=_array)))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    raise NotImplementedError(f"{type(value).__name__} is no part of signals")


def _array(kind: Any, value: Any) -> Any:
    dtype, shape, raw = value
    return np.frombuffer(raw, dtype).reshape(shape)
