"""Loader of a causal language model from its folder: nothing is downloaded, and no code of the folder is run."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers.utils import logging as transformers_logging

from moot.actors.models.local.token_mask import readable_tokens
from moot.actors.models.openai_errors import plain
from moot.protocols.errors import ConfigError

_FROM_DISK: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_PLAIN_LAYERS = {"DynamicLayer", "DynamicSlidingWindowLayer"}
_SERVE = "serve it with vLLM and name its URL"


@dataclass(frozen=True)
class Weights:
    """Loaded model with its tokenizer.

    Attributes:
        model: in evaluation mode, on `device`.
        tokenizer: of the folder.
        device: of the weights.
        ends: ids of the tokens that end a reply.
        longest: the context length, for prompt and reply together; None when the configuration does not state it.
        takes: argument names of the model's `forward`.
        vocabulary: number of tokens with probabilities, including those that its tokenizer lacks.
    """

    model: Any
    tokenizer: Any
    device: Any
    ends: frozenset[int]
    longest: int | None
    takes: frozenset[str]
    vocabulary: int


def check_folder(folder: Path) -> str:
    """Validates a model's folder without loading the weights: only the headers of their files are read.

    Returns:
        Reason why its replies cannot be constrained to schemas; empty when they can.

    Raises:
        ConfigError: one line for the first fault.
    """
    config, tokenizer = _read_config(folder), _read_tokenizer(folder)
    for file in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(file, framework="pt"):
                pass
        except (SafetensorError, OSError) as error:
            raise ConfigError(f"{file}: damaged or cut off: {plain(str(error))}") from None
    try:
        readable_tokens(tokenizer, _vocabulary(config), ())
    except ValueError as error:
        return plain(f"its tokenizer cannot be read as bytes: {error}")
    return ""


def load_weights(folder: Path) -> Weights:
    """Loads the model of a folder: in bfloat16 on a GPU that supports it, else in float32.

    Raises:
        ConfigError: the folder is not that of a supported language model.
    """
    config, tokenizer = _read_config(folder), _read_tokenizer(folder)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    halved = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    dtype = torch.bfloat16 if halved else torch.float32
    try:
        with _quiet():
            model, report = AutoModelForCausalLM.from_pretrained(
                folder, config=config, dtype=dtype, use_safetensors=True, output_loading_info=True, **_FROM_DISK
            )
        model = model.to(device).eval()
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise ConfigError(f"{folder}: the model cannot be loaded: {plain(str(error))}") from None
    if report["missing_keys"]:
        some = min(report["missing_keys"])
        raise ConfigError(f"{folder}: the weights of {some} are missing: no whole model for text generation")
    if getattr(model, "_is_stateful", False):
        raise ConfigError(f"{folder}: a recurrent model cannot be batched here: {_SERVE}")
    return Weights(
        model=model,
        tokenizer=tokenizer,
        device=device,
        ends=_ends(model.generation_config, tokenizer),
        longest=getattr(config.get_text_config(decoder=True), "max_position_embeddings", None),
        takes=frozenset(inspect.signature(model.forward).parameters),
        vocabulary=_vocabulary(config),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses progress bars and reports: faults are raised."""
    level, bar = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bar:
            transformers_logging.enable_progress_bar()


def _read_config(folder: Path) -> Any:
    try:
        config = AutoConfig.from_pretrained(folder, **_FROM_DISK)
        layers = DynamicCache(config=config).layers
        kinds = getattr(config.get_text_config(decoder=True), "layer_types", None) or ()
    except Exception as error:  # any fault in a file that anybody may have written
        raise ConfigError(f"{folder / 'config.json'}: {_reason(error)}") from None
    if config.is_encoder_decoder:
        raise ConfigError(f"{folder}: an encoder-decoder model cannot be run here: {_SERVE}")
    if {type(layer).__name__ for layer in layers} - _PLAIN_LAYERS or "chunked_attention" in kinds:
        raise ConfigError(f"{folder}: a model with a state other than keys and values cannot be run here: {_SERVE}")
    return config


def _read_tokenizer(folder: Path) -> Any:
    try:
        return AutoTokenizer.from_pretrained(folder, **_FROM_DISK)
    except Exception as error:  # any fault in a file that anybody may have written
        raise ConfigError(f"{folder}: its tokenizer cannot be read: {_reason(error)}") from None


def _vocabulary(config: Any) -> int:
    return int(getattr(config.get_text_config(decoder=True), "vocab_size", 0))


def _reason(error: Exception) -> str:
    return plain(f"{type(error).__name__}: {error}")


def _ends(generation: Any, tokenizer: Any) -> frozenset[int]:
    """Ids of end tokens. A chat model often ends its turns with another token than its texts, named in another file."""
    named = getattr(generation, "eos_token_id", None)
    listed = named if isinstance(named, list) else [named]
    return frozenset(end for end in (*listed, tokenizer.eos_token_id) if end is not None)
