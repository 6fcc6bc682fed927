"""Prompt encoder: from messages to token ids, by the model's chat template."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError

from moot.actors.models.interface import ModelError, fold_system_messages
from moot.actors.models.openai_errors import plain
from moot.protocols.messages import Message


class PromptEncoder:
    """Encodes conversations with one model's chat template.

    A tokenizer with a chat template uses that. Any other gets this layout, after its usual first token:

        System:
        ...

        User:
        ...

        Assistant:

    A special token that occurs in a message as text, such as `<|im_end|>`, is written with a space after its first
    character: the text of a document never ends or begins a turn.

    Args:
        tokenizer: of transformers.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        marks = [re.escape(mark) for mark in sorted(tokenizer.all_special_tokens, key=len, reverse=True) if mark]
        self._marks = re.compile("|".join(marks)) if marks else None

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of the prompt.

        Raises:
            ModelError: `request`, for pictures, for text that is not Unicode, or when the chat template refuses the
                conversation.
        """
        if any(message.images for message in messages):
            raise ModelError("request", "a model of local/PATH takes no pictures")
        turns = tuple(Message(message.role, self._harmless(message.content)) for message in messages)
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

    def _templated(self, turns: tuple[Message, ...]) -> str:
        refused = ""
        for tried in (turns, fold_system_messages(turns)):  # some templates (Gemma's) have no system role
            listed = [{"role": turn.role, "content": turn.content} for turn in tried]
            try:
                text: str = self._tokenizer.apply_chat_template(listed, tokenize=False, add_generation_prompt=True)
            except TemplateError as error:
                refused = str(error)
            else:
                return text
        raise ModelError("request", plain(f"the model's chat template refuses the conversation: {refused}"))


def _laid_out(turns: Sequence[Message]) -> str:
    text = "".join(f"{turn.role.capitalize()}:\n{turn.content}\n\n" for turn in turns)
    return f"{text}Assistant:\n"
