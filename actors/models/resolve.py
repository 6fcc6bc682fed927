"""Model name resolver: from a model's name in the configuration to a backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, StringConstraints

from moot.actors.models.families import Api
from moot.actors.models.interface import Offered
from moot.actors.models.small.spec import SmallModelSpec, is_small
from moot.actors.models.small.weights import with_weights
from moot.actors.telemetry.redaction import redact
from moot.protocols.errors import ConfigError, unknown_name

MODELS = {
    "simulated": "embedded random agent that knows nothing; `simulated?competence=0.8` sets how it behaves",
    "openai/NAME": "OpenAI's service; the key is read from OPENAI_API_KEY",
    "anthropic/NAME": "Anthropic's service; the key is read from ANTHROPIC_API_KEY",
    "replay/RUN": "the recorded replies of the run in that folder and no others; free, without key or network",
    "small": "a real model of 135M parameters on this machine's processor, weak; needs the extra `small`",
    "local/PATH": "weights in a folder, run by transformers in this process; needs the extra `local`",
    "http://HOST:PORT/v1#NAME": "any OpenAI-compatible server: vLLM, Ollama, llama.cpp, `moot simulate`",
}
"""Forms of a model's name, with their descriptions."""

EXAMPLES = {
    "simulated": "simulated",
    "small": "small",
    "openai/NAME": "openai/gpt-4o-mini",
    "anthropic/NAME": "anthropic/claude-haiku-4-5",
    "http://HOST:PORT/v1#NAME": "http://127.0.0.1:8000/v1#simulated",
}
"""Example name by form; none for the forms that name a folder."""


_OFFERED: dict[str, Offered] = {
    "openai": "yes",
    "anthropic": "yes",
    "small": "yes",
    "local": "yes",
    "url": "on request",
}


Kind = Literal["simulated", "small", "openai", "anthropic", "local", "url", "replay"]

_PREFIXES: dict[str, tuple[Kind, str]] = {
    "openai": ("openai", f"has no name: write openai/NAME, such as {EXAMPLES['openai/NAME']}"),
    "anthropic": ("anthropic", f"has no name: write anthropic/NAME, such as {EXAMPLES['anthropic/NAME']}"),
    "replay": ("replay", "names no run: write replay/RUN, such as replay/runs/selene-sample-s0"),
    "local": ("local", "names no folder: write local/PATH, such as local/models/qwen"),
}
"""Backend by the prefix before the slash, and the error message for a name that ends there."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Parsed model name.

    Attributes:
        kind: backend.
        name: the original name.
        model: the model's name at its service, or the folder of `replay` and `local`; else empty.
        base_url: the server, without a trailing slash; empty unless `url`.
        more_urls: further servers of the same model.
    """

    kind: Kind
    name: str
    model: str = ""
    base_url: str = ""
    more_urls: tuple[str, ...] = ()

    @classmethod
    def parse(cls, name: str) -> ModelSpec:
        """Parse `name`.

        Raises:
            ConfigError: the name has none of the forms in `MODELS`, or contains a password.
        """
        if name.startswith(("http://", "https://")):
            return _url_spec(name)
        if name.partition("?")[0] == "simulated":
            return cls("simulated", name)
        if is_small(name):
            return cls("small", str(SmallModelSpec.parse(name)))
        prefix, _, model = name.partition("/")
        kind, what = _PREFIXES.get(prefix, (None, ""))
        if kind is None or name == "local":
            raise unknown_name("model", redact(name), MODELS)
        if not model.strip() or not model.isprintable():
            raise ConfigError(f"model '{prefix}/' {what}")
        return cls(kind, name, model=model)


def _url_spec(name: str) -> ModelSpec:
    base_urls, _, model = name.partition("#")
    base_url, *more_urls = [check_base_url(url) for url in _each_server(base_urls)]
    if not model.strip() or not model.isprintable():
        raise ConfigError(
            f"model {base_url!r} does not say which model of the server: add #NAME, as in {base_url}#NAME"
        )
    return ModelSpec("url", name, model=model, base_url=base_url, more_urls=tuple(more_urls))


def _each_server(urls: str) -> list[str]:
    """Expands `http://a:8000,b:8000/v1` to one URL per server."""
    scheme, _, rest = urls.partition("://")
    hosts, slash, path = rest.partition("/")
    if "," in path or "://" in path:
        raise ConfigError(
            f"model {redact(urls)!r}: several servers share one path: write http://HOST:PORT,HOST:PORT/v1#NAME"
        )
    return [f"{scheme}://{host}{slash}{path}" for host in hosts.split(",")]


def check_base_url(url: str) -> str:
    """Validates a server's base URL and strips a trailing slash.

    Raises:
        ConfigError: not an http(s) URL with a host, or it contains a user, a password, a query or a fragment.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or not url.isprintable() or " " in url:
        raise ConfigError(f"{redact(url)!r} is not a server's URL: write http://HOST:PORT/v1")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"the URL of {parts.hostname!r} may not hold a user, password, query or fragment: "
            "put the key into an environment variable and name that in `api_key_env`"
        )
    if parts.path.rstrip("/").endswith("/chat/completions"):
        raise ConfigError(f"{url!r} should end before /chat/completions")
    return url.rstrip("/")


def canonical_model(name: str) -> str:
    """Canonical model name, under which a model is recorded, priced and limited; a local path is absolute,
    and `small` includes its weights.

    >>> canonical_model("http://127.0.0.1:8000/v1/#m")
    'http://127.0.0.1:8000/v1#m'

    Raises:
        ConfigError: the name has none of the forms in `MODELS`, or contains a password; or the weights of `small` are
            missing.
    """
    spec = ModelSpec.parse(name)
    if spec.kind == "small":
        return str(with_weights(SmallModelSpec.parse(name)))
    if spec.kind == "url":
        return pool_name((spec.base_url, *spec.more_urls), spec.model)
    return absolute_model(name)


def pool_name(base_urls: Sequence[str], model: str) -> str:
    """Name of a model behind one server, or behind a pool of servers.

    >>> pool_name(["http://a:8000/v1", "http://b:8000/v1"], "m")
    'http://a:8000,b:8000/v1#m'
    """
    scheme, _, first = base_urls[0].partition("://")
    host, slash, path = first.partition("/")
    hosts = [host, *(url.partition("://")[2].partition("/")[0] for url in base_urls[1:])]
    return f"{scheme}://{','.join(hosts)}{slash}{path}#{model}"


def is_embedded(name: str) -> bool:
    """Whether a model runs in the calling process, so that no external limits apply."""
    return ModelSpec.parse(name).kind in ("simulated", "replay", "local")


def offered_schemas(name: str) -> Offered:
    """Schema support that the backend behind a model's name declares, without constructing it."""
    return _OFFERED.get(ModelSpec.parse(name).kind, "no")


def constrained_before_profiles(name: str) -> bool:
    """Whether a backend already constrained replies to schemas before records had model profiles."""
    return ModelSpec.parse(name).kind != "local"


def is_replay(name: str) -> bool:
    """Whether a model replays a recorded run."""
    return ModelSpec.parse(name).kind == "replay"


EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Z_][A-Z0-9_]*$")]
"""Pattern of an environment variable's name, in capitals: a key pasted in its place is refused."""


def absolute_model(name: str) -> str:
    """Makes the folder of a `local/PATH` absolute: actors have another working directory than the command.

    Raises:
        ConfigError: the name has none of the forms in `MODELS`, or contains a password.
    """
    spec = ModelSpec.parse(name)
    return name if spec.kind != "local" else f"local/{Path(spec.model).expanduser().absolute()}"


class ModelBinding(BaseModel):
    """Model configuration of a role. It contains no secret; refused values are not echoed.

    Attributes:
        model: one of the forms in `MODELS`.
        api_key_env: name of the environment variable with the key; None for the backend's default.
        base_url: another endpoint for `openai/NAME` (ends in `/v1`) or `anthropic/NAME` (ends before it).
        api: OpenAI's API for `openai/NAME`, if detected by a trial; None uses what is known of the model.
        untried: servers of a pool that did not answer the trial calls.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    model: str
    api_key_env: EnvName | None = None
    base_url: str | None = None
    api: Api | None = None
    untried: tuple[str, ...] = ()


def over_responses(binding: ModelBinding) -> ModelBinding | None:
    """The same model over the Responses API; None where that is not an option, or is already in use."""
    chosen = ModelSpec.parse(binding.model).kind != "openai" or binding.api is not None
    return None if chosen else binding.model_copy(update={"api": "responses"})
