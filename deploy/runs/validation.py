"""Validation of user input by pydantic models, with one-line errors that name the user's flags and keys."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from moot.actors.telemetry.redaction import redact
from moot.protocols.errors import ConfigError
from moot.protocols.validation_messages import expected_value, explain_error

M = TypeVar("M", bound=BaseModel)

_SECRET_KEYS = frozenset({"api_key_env", "api_key", "base_url", "encoder_key_env"})
_NONE: Mapping[str, str] = MappingProxyType({})


def validate_model(
    model: type[M], values: Mapping[str, Any], where: str = "", *, typed: Mapping[str, str] = _NONE
) -> M:
    """Validate `values` as a `model`.

    Args:
        model: the pydantic model.
        values: values by field.
        where: prefix of an error message: the file with the values.
        typed: flag by field, possibly empty, for fields that the user gave as flags and not in `where`.

    Raises:
        ConfigError: a value is invalid; names the key or the flag and the expected value, and never shows an API key.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = [str(part) for part in first["loc"]]
        message = expected_value(first) if _SECRET_KEYS & {*path} else explain_error(first, redact)
        flag = typed.get(path[0]) if path else None
        key = ".".join(path)
        inner = key.partition(".")[2]
        typed_as = f"{flag} {inner}" if flag and inner else flag
        # The message of an error about several keys names them itself.
        subject = f"{typed_as or f'`{key}`'}: " if path else ""
        raise ConfigError(f"{where if flag is None else ''}{subject}{message}") from None
