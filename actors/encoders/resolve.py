"""Encoder name resolver: from an encoder's name in the configuration to an encoder."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder
from moot.actors.encoders.interface import Encoder
from moot.actors.encoders.minilm import MINILM, MiniLM, minilm_identity
from moot.actors.models.resolve import check_base_url
from moot.actors.models.retry import RetryPolicy
from moot.actors.telemetry.redaction import redact
from moot.protocols.errors import ConfigError, unknown_name

AUTO = "auto"
"""Default of a run that names no encoder: hashed n-grams, unless the run benefits from a sentence encoder."""

ENCODERS = {
    AUTO: f"the default: {MINILM} where it is installed and SELENE compares real models' replies, else hashed-ngrams",
    "hashed-ngrams": "shared words and word pieces, not meaning; no download, deterministic",
    MINILM: "a small sentence model on this machine's processor; needs the extra `small` and its weights",
    "http://HOST:PORT/v1#NAME": "any server with OpenAI's /v1/embeddings: vLLM, Ollama, llama.cpp, `moot simulate`",
    "openai/NAME": "OpenAI's embeddings; the key is read from OPENAI_API_KEY",
    "sentence-transformers/NAME": "a model in a folder or an installed package, in this process; never downloaded",
}
"""Forms of an encoder's name, with their descriptions."""

_OPENAI_URL = "https://api.openai.com/v1"
_OPENAI_KEY = "OPENAI_API_KEY"
_PINNED = re.compile(r"(?P<model>.+?)(?:@(?P<digest>[0-9a-f]{12}))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """Parsed encoder name.

    Attributes:
        kind: form of the name.
        model: the model's name at its server, or the path or package of a local one; empty for the built-in encoders.
        base_url: the server, without a trailing slash; empty unless `url`.
        digest: of a local model's weights; empty when the name has none.
    """

    kind: Literal["hashed-ngrams", "minilm", "url", "openai", "sentence-transformers"]
    model: str = ""
    base_url: str = ""
    digest: str = ""

    @classmethod
    def parse(cls, name: str) -> EncoderSpec:
        """Parse `name`; reads no file.

        Raises:
            ConfigError: the name has none of the forms in `ENCODERS`, or contains a password.
        """
        if name.startswith(("http://", "https://")):
            return _url_spec(name)
        if name in (AUTO, "hashed-ngrams", HashedNgramEncoder().name):
            return cls("hashed-ngrams")
        weights = _PINNED.fullmatch(name)
        if weights is not None and weights["model"] == MINILM:
            return cls("minilm", digest=weights["digest"] or "")
        kind, _, model = name.partition("/")
        if kind not in ("openai", "sentence-transformers"):
            raise unknown_name("encoder", redact(name), ENCODERS)
        if not model.strip() or not model.isprintable():
            example = "text-embedding-3-small" if kind == "openai" else "path/to/all-MiniLM-L6-v2"
            raise ConfigError(f"encoder '{kind}/' has no name: write {kind}/NAME, such as {kind}/{example}")
        if kind == "openai":
            return cls("openai", model=model)
        found = _PINNED.fullmatch(model)
        assert found is not None
        return cls("sentence-transformers", model=found["model"], digest=found["digest"] or "")


def _url_spec(name: str) -> EncoderSpec:
    base_url, _, model = name.partition("#")
    base_url = check_base_url(base_url)
    if base_url.endswith("/embeddings"):
        raise ConfigError(f"encoder {base_url!r} should end before /embeddings")
    if not model.strip() or not model.isprintable():
        raise ConfigError(f"encoder {base_url!r} does not name a model: add #NAME, as in {base_url}#NAME")
    return EncoderSpec("url", model=model, base_url=base_url)


def identity(name: str) -> str:
    """Canonical encoder name, under which embeddings and thresholds are stored; itself a valid name.

    For a local model it includes the weights' digest, and an absolute path: `sentence-transformers/NAME@DIGEST`. Reads
    the weights once.

    Raises:
        ConfigError: the name is malformed, the model does not exist, or its weights differ from the name's digest.
    """
    spec = EncoderSpec.parse(name)
    if spec.kind == "minilm":
        return minilm_identity(spec.digest)
    if spec.kind == "hashed-ngrams":
        return HashedNgramEncoder().name
    if spec.kind == "url":
        return f"{spec.base_url}#{spec.model}"
    if spec.kind == "openai":
        return f"openai/{spec.model}"
    from moot.actors.encoders.sentence_model import check_modules, find_folder, folder_digest

    folder = find_folder(spec.model)
    check_modules(folder)
    digest = folder_digest(folder)
    if spec.digest not in ("", digest):
        raise ConfigError(f"encoder {name!r}: {folder} holds another model ({digest})")
    at_path = folder == Path(spec.model).expanduser().absolute()
    return f"sentence-transformers/{folder if at_path else spec.model}@{digest}"


def is_served(name: str) -> bool:
    """Whether an encoder is behind HTTP, so that its calls may be billed."""
    return EncoderSpec.parse(name).kind in ("url", "openai")


def make_encoder(name: str, retry: RetryPolicy, *, api_key_env: str | None = None) -> Encoder:
    """Creates the encoder of an identity; opens no connection and loads no model.

    Args:
        name: as returned by `identity`.
        retry: policy for failed requests.
        api_key_env: environment variable of the server's key; None for the form's default.

    Raises:
        ConfigError: the name is malformed, or the encoder takes no key.
    """
    spec = EncoderSpec.parse(name)
    if api_key_env is not None and spec.kind not in ("url", "openai"):
        raise ConfigError(f"`encoder_key_env` is for encoders behind a server only, not for {redact(name)!r}")
    if spec.kind == "hashed-ngrams":
        return HashedNgramEncoder()
    from moot.actors.encoders.batching import BatchedEncoder

    if spec.kind == "minilm":
        return BatchedEncoder(MiniLM(name), retry)
    if spec.kind == "sentence-transformers":
        from moot.actors.encoders.sentence_model import SentenceModel

        return BatchedEncoder(SentenceModel(name, spec.model, spec.digest), retry)
    from moot.actors.encoders.endpoint import EmbeddingsEndpoint

    if spec.kind == "openai":
        base_url = check_base_url(os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL)
        endpoint = EmbeddingsEndpoint(name, base_url, spec.model, api_key_env=api_key_env or _OPENAI_KEY)
    else:
        endpoint = EmbeddingsEndpoint(name, spec.base_url, spec.model, api_key_env=api_key_env)
    return BatchedEncoder(endpoint, retry)
