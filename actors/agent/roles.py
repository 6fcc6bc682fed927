"""Roles: names that a protocol asks, bound by configuration to a model, its decoding and a persona."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from moot.actors.models.early_stop import EarlyStop
from moot.actors.models.model_profile import ModelProfile
from moot.protocols.errors import unknown_name
from moot.protocols.messages import Decoding

_OURS = frozenset(
    {
        "model",
        "messages",
        "input",
        "instructions",
        "system",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "logprobs",
        "top_logprobs",
        "response_format",
        "output_config",
        "stream",
        "stream_options",
        "background",
        "conversation",
        "previous_response_id",
        "n",
        "seed",
        "stop",
        "stop_sequences",
        "repetition_penalty",
        "repeat_penalty",
        "reasoning_effort",
        "tools",
        "tool_choice",
        "functions",
        "function_call",
        # other names that servers accept for the parameters above
        "n_predict",
        "num_predict",
        "best_of",
        "n_probs",
        "echo",
        "prompt",
        "format",
        "options",
        "structural_tag",
        "max_new_tokens",
        "min_tokens",
        "ignore_eos",
        "stop_token_ids",
        "use_beam_search",
        "models",
        "prefix",
        # parameters that change the prompt
        "truncate_prompt_tokens",
        "truncation",
        "chat_template",
        "add_generation_prompt",
        # parameters that change where hidden reasoning and special tokens go
        "reasoning_format",
        "skip_special_tokens",
        "json_schema",
        "grammar",
        "ebnf",
        "regex",
        "structured_outputs",
        "guided_json",
        "guided_regex",
        "guided_choice",
        "guided_grammar",
        # parameters that change the tokens whose log-probabilities are read
        "return_tokens_as_token_ids",
        "post_sampling_probs",
        "continue_final_message",
    }
)
"""Parameters that the request sets itself, or that would change how its reply is read."""


_OURS_WITHIN = {"text": "format", "reasoning": "effort"}
"""Keys set by moot within objects of the Responses API; the user may set the other keys."""


def _not_ours(extra: dict[str, Any]) -> dict[str, Any]:
    within = [
        f"{key}.{inner}"
        for key, inner in _OURS_WITHIN.items()
        if isinstance(extra.get(key), dict) and inner in extra[key]
    ]
    for key in (*within, *extra):
        if key in _OURS or key in within:
            raise ValueError(f"`{key}` is not allowed in `extra`: it has its own setting, or moot sends it itself")
    return extra


def _as_texts(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class RoleBinding(BaseModel):
    """Role binding: the model, decoding and persona of a role.

    Attributes:
        model: one of the forms that `moot models` lists.
        persona: text before the system prompt.
        temperature: None uses the server's default.
        top_p: nucleus share; None uses the server's default.
        max_tokens: length of the longest reply; some protocols have a larger default.
        reasoning_tokens: tokens for reasoning before the reply, in addition to `max_tokens`.
        seed: base of the sampling seeds, one per step; for servers that take a seed.
        stop: up to four texts that end a reply.
        repetition_penalty: above 1 makes repetition less likely; for servers that support it, such as vLLM, SGLang and
            llama.cpp (there `repeat_penalty`).
        reasoning_effort: amount of reasoning before the reply: `minimal`, `low`, `medium`, `high` ...
        extra: body parameters that are sent unchanged: `top_k`, `min_p`, `chat_template_kwargs` ...
        top_logprobs: alternatives per token; None uses what the protocol needs.
        api_key_env: environment variable of the key.
        base_url: another server for the vendor's client.
        timeout_s: deadline of one ask, re-ask and retries included.
        structured: whether the backend constrains replies to a JSON schema; None leaves it to the backend.
        early_stop: when to stop a streamed reply and ask for another; None: never.
        profile: result of the trial calls; set before a run starts and read back when it resumes. None for a model
            without trial calls, and in older records.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = "simulated"
    persona: str = ""
    temperature: float | None = Field(default=0.3, ge=0.0, le=2.0)
    top_p: float | None = Field(default=0.9, gt=0.0, le=1.0)
    max_tokens: int = Field(default=400, ge=1)
    reasoning_tokens: int = Field(default=4000, ge=0)
    seed: int | None = Field(default=None, ge=0, lt=2**31)
    stop: Annotated[tuple[str, ...], BeforeValidator(_as_texts), Field(max_length=4)] = ()
    repetition_penalty: float | None = Field(default=None, gt=0.0, le=10.0)
    reasoning_effort: str | None = Field(default=None, pattern=r"^[a-z]{2,20}$")
    extra: Annotated[dict[str, Any], AfterValidator(_not_ours)] = {}
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    api_key_env: str | None = None
    base_url: str | None = None
    timeout_s: float = Field(default=120.0, gt=0.0)
    structured: bool | None = None
    early_stop: EarlyStop | None = None
    profile: ModelProfile | None = None

    def decoding(self) -> Decoding:
        """Default decoding of the role's asks."""
        needed = 1 if self.early_stop is not None else None
        return Decoding(
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=self.max_tokens,
            top_logprobs=needed if self.top_logprobs is None else self.top_logprobs,
            **self.beside_sampling(),
        )

    def writes_prose(self, reply: str) -> bool:
        """Whether the trial calls found that nothing makes the model write this kind of reply as JSON."""
        if self.profile is None or self.profile.writes_json:
            return False
        return self.structured is False or self.profile.mode_of(reply)[0] == "free"

    def beside_sampling(self) -> dict[str, Any]:
        """Parameters for every ask of the role, also for one with its own decoding."""
        extra = msgspec.json.encode(self.extra, order="sorted").decode() if self.extra else ""
        return {
            "seed": self.seed,
            "stop": self.stop,
            "repetition_penalty": self.repetition_penalty,
            "reasoning_effort": self.reasoning_effort,
            "extra": extra,
        }


class Roles:
    """Bindings of a run: a list of members for each family; `agent/4` of three members is the second one again.

    Args:
        bindings: members in order, by family name.
    """

    def __init__(self, bindings: Mapping[str, list[RoleBinding]]) -> None:
        self._members = dict(bindings)
        self._resolved: dict[str, RoleBinding] = {}

    @property
    def members(self) -> dict[str, list[RoleBinding]]:
        """All bindings by family."""
        return dict(self._members)

    def binding(self, role: str) -> RoleBinding:
        """Binding of a full role name.

        Raises:
            ConfigError: the role's family has no binding.
        """
        known = self._resolved.get(role)
        if known is None:
            family, _, number = role.partition("/")
            if family not in self._members:
                raise unknown_name("role", family, self._members)
            members = self._members[family]
            known = members[int(number) % len(members) if number.isdigit() else 0]
            self._resolved[role] = known
        return known

    def panel(self, family: str) -> list[str]:
        """Full names of a family's members: `judge/0`, `judge/1` ..."""
        if family not in self._members:
            raise unknown_name("role", family, self._members)
        return [f"{family}/{i}" for i in range(len(self._members[family]))]
