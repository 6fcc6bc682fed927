"""From messages to the token ids that a model continues."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError

from moot.actors.models.interface import ModelError
from moot.actors.models.openai_errors import plain
from moot.protocols.messages import Message

Turns = list[dict[str, str]]


class PromptEncoder:
    """Writes conversations as one model was trained to read them.

    A tokenizer with a chat template writes its own. Any other gets this layout, after its usual first token:

        System:
        ...

        User:
        ...

        Assistant:

    A message that holds one of the tokenizer's special tokens as text, such as `<|im_end|>`, is written with a space
    after that token's first character: what a document says never ends a turn or begins one.

    Args:
        tokenizer: of transformers.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        marks = [re.escape(mark) for mark in sorted(tokenizer.all_special_tokens, key=len, reverse=True) if mark]
        self._marks = re.compile("|".join(marks)) if marks else None

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """The prompt's token ids.

        Raises:
            ModelError: `request`, for pictures, for text that is not Unicode, or when the chat template refuses the
                conversation.
        """
        if any(message.images for message in messages):
            raise ModelError("request", "a model of local/PATH takes no pictures")
        turns = [{"role": message.role, "content": self._harmless(message.content)} for message in messages]
        own = self._tokenizer.chat_template is not None
        text = self._templated(turns) if own else _laid_out(turns)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ModelError("request", "a message holds a lone surrogate, which is not Unicode text") from None
        ids: list[int] = self._tokenizer(text, add_special_tokens=not own, verbose=False)["input_ids"]
        return ids

    def _harmless(self, content: str) -> str:
        if self._marks is None:
            return content
        return self._marks.sub(lambda found: f"{found[0][0]} {found[0][1:]}", content)

    def _templated(self, turns: Turns) -> str:
        try:
            return self._apply(turns)
        except TemplateError as error:
            merged = _without_system(turns)
            if merged == turns:
                raise _refused(error) from None
        # Some templates (Gemma's) know no system role: what it says then opens the user's first message.
        try:
            return self._apply(merged)
        except TemplateError as error:
            raise _refused(error) from None

    def _apply(self, turns: Turns) -> str:
        text: str = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return text


def _laid_out(turns: Turns) -> str:
    said = "".join(f"{turn['role'].capitalize()}:\n{turn['content']}\n\n" for turn in turns)
    return f"{said}Assistant:\n"


def _without_system(turns: Turns) -> Turns:
    system = "\n\n".join(turn["content"] for turn in turns if turn["role"] == "system")
    rest = [turn for turn in turns if turn["role"] != "system"]
    if not system or not rest or rest[0]["role"] != "user":
        return turns
    return [{"role": "user", "content": f"{system}\n\n{rest[0]['content']}"}, *rest[1:]]


def _refused(error: TemplateError) -> ModelError:
    return ModelError("request", plain(f"the model's chat template refuses the conversation: {error}"))
