"""Token prices: a small dated table, which users can override. An unknown price stays unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from moot.actors.models.small.spec import is_small
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.messages import Usage
from moot.protocols.regular_files import cause, read_regular_text
from moot.protocols.validation_messages import explain_error
from moot.protocols.yaml_file import parsed_yaml

_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})$")
PER_TOKENS = 1_000_000
"""Tokens that a price is for."""

_FORMS = (
    "expected `models:` and below it a line per model, `NAME: {input: USD, output: USD}`",
    "expected a line per model, `NAME: {input: USD, output: USD}`",
    "expected {input: USD, output: USD}, per million tokens",
)
"""Expected content of a price file, by depth: the file, `models`, one model."""

_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Price(BaseModel):
    """Token prices of a model, in USD per million tokens.

    Attributes:
        input: of the prompt.
        output: of the completion.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: _Usd
    output: _Usd

    def cost_usd(self, usage: Usage) -> float | None:
        """Cost of a call in USD; None when the server did not state its usage."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        return self.bound_usd(usage.prompt_tokens, usage.completion_tokens)

    def bound_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Cost in USD of so many tokens; their upper bounds give that of a call before it is made."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / PER_TOKENS


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Price of a model of a record: as recorded, else nothing for a model in a process of moot; None when unknown."""
    return prices.get(model) or PriceTable().price(model)


FREE = Price(input=0.0, output=0.0)


class PriceTable(BaseModel):
    """Price table by model name.

    Attributes:
        as_of: date of the prices; free text.
        models: prices by name as users write it (`openai/gpt-4o`, `http://host:port/v1#model`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: str = ""
    models: dict[str, Price] = {}

    def price(self, model: str) -> Price | None:
        """Price of a model: its own, or that of the model whose dated snapshot it is; None when unknown. A model in a
        process of moot costs nothing."""
        if model.partition("?")[0] == "simulated" or is_small(model) or model.startswith(("local/", "replay/")):
            return FREE
        return self.models.get(model) or self.models.get(_SNAPSHOT.sub("", model))

    def overlaid(self, own: PriceTable) -> PriceTable:
        """This table, updated with another's prices."""
        return PriceTable(as_of=own.as_of or self.as_of, models={**self.models, **own.models})


def price_table(file: str | None = None) -> PriceTable:
    """Loads the package's prices, overridden by a user's YAML file of the same format.

    Raises:
        ConfigError: the file cannot be read or has another format.
    """
    return _packaged() if file is None else _packaged().overlaid(_from_file(Path(file).expanduser()))


@cache
def _packaged() -> PriceTable:
    return _table(yaml.safe_load(files("moot.actors.models").joinpath("prices.yaml").read_text("utf-8")))


def _from_file(path: Path) -> PriceTable:
    try:
        return _table(parsed_yaml(read_regular_text(path)))
    except OSError as error:
        raise ConfigError(f"{path}: {cause(error)}") from None
    except ValidationError as error:
        raise ConfigError(f"{path}: {_explained(error)}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())[:200]}") from None


def _explained(error: ValidationError) -> str:
    """Error of a table, in one line; a misspelt key before the key that is missing because of it."""
    first = min(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    path = [str(part) for part in first["loc"] if part != "[key]"]
    message = explain_error(first)
    if first["type"] == "extra_forbidden":
        key = path.pop()
        message = str(unknown_name("key", key, (Price if path else PriceTable).model_fields))
    elif first["type"] in ("model_type", "dict_type"):
        message = _FORMS[len(path)]
    return f"`{'.'.join(path)}`: {message}" if path else message


def _table(content: object) -> PriceTable:
    if isinstance(content, Mapping) and "as_of" in content:
        content = {**content, "as_of": str(content["as_of"])}
    return PriceTable.model_validate(content if content is not None else {})
