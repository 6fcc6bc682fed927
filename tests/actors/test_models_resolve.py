"""From a model's name to a backend."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from moot.actors.models.resolve import ModelBinding, ModelSpec, make_model
from moot.protocols.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("simulated", ModelSpec("simulated", "simulated")),
        ("simulated?competence=0.8", ModelSpec("simulated", "simulated?competence=0.8")),
        ("openai/gpt-4o-mini", ModelSpec("openai", "openai/gpt-4o-mini", model="gpt-4o-mini")),
        ("anthropic/claude-opus-5-5", ModelSpec("anthropic", "anthropic/claude-opus-5-5", model="claude-opus-5-5")),
        ("local/models/qwen", ModelSpec("local", "local/models/qwen", model="models/qwen")),
        ("local//srv/qwen", ModelSpec("local", "local//srv/qwen", model="/srv/qwen")),
        ("openai/ft:x/y", ModelSpec("openai", "openai/ft:x/y", model="ft:x/y")),
        (
            "http://localhost:8000/v1/#meta/Llama-3",
            ModelSpec(
                "url",
                "http://localhost:8000/v1/#meta/Llama-3",
                model="meta/Llama-3",
                base_url="http://localhost:8000/v1",
            ),
        ),
        ("https://[::1]#m", ModelSpec("url", "https://[::1]#m", model="m", base_url="https://[::1]")),
    ],
)
def test_names(name: str, spec: ModelSpec) -> None:
    assert ModelSpec.parse(name) == spec


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("anthropc/claude", "'anthropc/claude'"),
        ("anthropic/", "anthropic/NAME"),
        ("replay/", "names no run"),
        ("local", "unknown model"),
        ("local/", "local/PATH"),
        ("local/a\nb", "local/PATH"),
        ("simulatd", "'simulated'"),
        ("gpt-4o", "unknown model"),
        ("", "unknown model"),
        ("openai/", "openai/NAME"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1#NAME"),
        ("http://localhost:8000/v1#", "add #NAME"),
        ("http://#m", "not a server's URL"),
        ("http://h:99999/v1#m", "not a server's URL"),
        ("http://h:x/v1#m", "not a server's URL"),
        ("http://[::1/v1#m", "not a server's URL"),
        ("http://h\n/v1#m", "not a server's URL"),
        ("http://h/v1/chat/completions#m", "/chat/completions"),
        ("http://me:hunter2@h/v1#m", "environment variable"),
        ("http://h/v1?key=hunter2#m", "environment variable"),
        ("htp://me:hunter2@h/v1#m", "unknown model"),
    ],
)
def test_names_that_are_refused(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelSpec.parse(name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("pasted", ["sk-proj-0123456789", "hf_AbCdEf0123", "", "A B"])
def test_a_pasted_key_is_refused_and_not_echoed(pasted: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ModelBinding(model="openai/m", api_key_env=pasted)
    assert not pasted or pasted not in str(caught.value)


@pytest.mark.parametrize("model", ["simulated", "http://h/v1#m"])
def test_base_url_is_for_vendors(model: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        make_model(ModelBinding(model=model, base_url="http://h/v1"), seed=1, answer_key=None)


@pytest.mark.parametrize("url", ["http://u:hunter2@h/v1", "h:80", "http://h/v1#m"])
@pytest.mark.parametrize("model", ["openai/m", "anthropic/m"])
def test_base_url_is_checked(model: str, url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_model(ModelBinding(model=model, base_url=url), seed=1, answer_key=None)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("end", ["/v1", "/v1/", "/v1/messages"])
def test_base_url_of_anthropic_ends_before_its_version(end: str) -> None:
    with pytest.raises(ConfigError, match="should end before /v1"):
        make_model(ModelBinding(model="anthropic/m", base_url=f"http://h{end}"), seed=1, answer_key=None)


def test_names_are_resolved_without_heavy_imports() -> None:
    code = (
        "import sys, moot.actors.models.resolve as r;"
        "[r.ModelSpec.parse(f'{v}/m') for v in ('openai', 'anthropic', 'local')];"
        "import moot.actors.models.local.model;"
        "heavy = ('ray', 'openai', 'anthropic', 'aiohttp', 'httpx2', 'pandas', 'torch', 'transformers');"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
