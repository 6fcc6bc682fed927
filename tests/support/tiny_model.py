"""Tiny model folders with random weights and byte tokenizers, and calls of them; needs the extra `local`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedTokenizerFast

from moot.actors.models.interface import Model, ModelReply
from moot.protocols.messages import Decoding, Message

WARM = Decoding(temperature=0.9, top_p=0.8, max_tokens=24, top_logprobs=5)
END = "<|end|>"
CONTEXT = 256
CHAT_TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
NO_SYSTEM_TEMPLATE = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + CHAT_TEMPLATE
)


def byte_tokenizer(chat_template: str | None = CHAT_TEMPLATE) -> Any:
    """A tokenizer with one token per byte and a few for words, so that non-ASCII characters are split."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "t"), ("Ġt", "h"), ("Ġth", "e"), ("a", "n"), ("an", "d")]
    names = [*letters, *("".join(pair) for pair in merges)]
    core = Tokenizer(models.BPE({name: place for place, name in enumerate(names)}, merges))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token=END, clean_up_tokenization_spaces=False)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|start|>"]})
    tokenizer.chat_template = chat_template
    return tokenizer


def metaspace_tokenizer() -> Any:
    """Tokenizer that marks spaces like that of Llama 2, strips the first one when decoding, and falls back to bytes."""
    names = ["<unk>", END, "▁", "▁Yes", "Yes", "▁No", "a", *(f"<0x{byte:02X}>" for byte in range(256))]
    vocabulary = {name: place for place, name in enumerate(names)}
    core = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    core.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    core.decoder = decoders.Sequence(steps)
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token=END, unk_token="<unk>")


def tiny_folder(
    folder: Path,
    kind: str = "llama",
    *,
    chat_template: str | None = CHAT_TEMPLATE,
    spread: float = 0.3,
    context: int = CONTEXT,
) -> Path:
    """Write the folder of a model with two layers.

    Args:
        kind: `llama` (rotary positions, grouped-query attention) or `gpt2` (learnt positions).
        spread: standard deviation of the weights; a larger one makes the model's next-token distribution more peaked.
        context: context length in tokens, of prompt and reply.
    """
    tokenizer = byte_tokenizer(chat_template)
    common: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "initializer_range": spread,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }
    config: Any
    if kind == "gpt2":
        config = GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=context, **common)
    else:
        config = LlamaConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=context, **common,
        )  # fmt: skip
    torch.manual_seed(7)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def said(text: str) -> list[Message]:
    """A conversation with the user text `text`."""
    return [Message("system", "Be brief."), Message("user", text)]


async def ask(model: Model, text: str, decoding: Decoding = WARM, key: str | None = None) -> ModelReply:
    """The model's reply to `text`, for the step key `key` or a default one."""
    return await model.complete(said(text), decoding, step_key=key or f"case/{text}")
