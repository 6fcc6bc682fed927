"""The page of names: what a protocol, a preset, a task, a model, an encoder and a template can be called."""

from __future__ import annotations

import moot
from generator.markdown import code, page, prose, table
from moot.deploy.runs.capabilities import forms
from moot.protocols.presets.preset import find_preset, preset_names
from moot.protocols.templates import template_headers

_TEMPLATES = """These are moot's own prompts, as `moot templates` lists them. Your own protocol may ask with each of
them, and a folder given with `--prompts` may replace them, with the same slots. An ask must give every slot of its
template. After a slot, `[...]` says that it is a list and of what, `{...}` lists the keys of a mapping, and `(...)`
describes the content, or says that it may be empty. `{}` inside of `[]` is a list of such mappings."""


def names_page() -> str:
    """Everything that a run can name."""
    protocols = [(code(name), prose(entry.description)) for name, entry in moot.PROTOCOLS.items()]
    presets = [
        (code(name), code(preset.protocol), preset.paper, preset.models)
        for name, preset in ((name, find_preset(name)) for name in preset_names())
    ]
    tasks = [(code(kind.form), prose(kind.about), prose(kind.layout)) for kind in moot.TASKS.values()]
    models = [(code(form), prose(about)) for form, about in moot.MODELS.items()]
    encoders = [(code(form), prose(about)) for form, about in moot.ENCODERS.items()]
    templates = [(code(name), each.readers, each.slots) for name, each in template_headers().items()]
    capabilities = forms()
    kinds = list(next(iter(capabilities.values())))
    can = [(code(form), *(words[kind] for kind in kinds)) for form, words in capabilities.items()]
    return _page(
        (
            "Protocols",
            "Use `--protocol NAME`; name your own protocol as `module:Class`.",
            table(("name", "what it is"), protocols),
        ),
        ("Presets", "Use `--preset NAME`.", table(("name", "protocol", "paper", "its models"), presets)),
        ("Tasks", "Use `--task NAME`.", table(("name", "what it is", "its file"), tasks)),
        ("Models", "Use `--model NAME`, or `--role ROLE=NAME` for one role.", table(("name", "what it is"), models)),
        (
            "Capabilities of models",
            "Each form of a model's name declares these capabilities.",
            table(("name", *kinds), can),
        ),
        ("Encoders", "Use `--encoder NAME`.", table(("name", "what it does"), encoders)),
        ("Templates", _TEMPLATES, table(("template", "read by", "slots"), templates)),
    )


def _page(*sections: tuple[str, str, str]) -> str:
    parts = [part for heading, *rest in sections for part in (f"## {heading}", *rest)]
    return page(
        "# Names",
        "This page lists every name that a run accepts, on the command line, in a configuration and in Python.",
        *parts,
    )
