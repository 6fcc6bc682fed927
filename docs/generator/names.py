"""The page of names: what a protocol, a preset, a task, a model, an encoder and a template can be called."""

from __future__ import annotations

import moot
from generator.markdown import code, page, prose, table
from moot.deploy.runs.capabilities import forms
from moot.protocols.presets.preset import find_preset, preset_names
from moot.protocols.templates import template_headers

_TEMPLATES = """The prompts that come with moot, as `moot templates` lists them. A protocol of your own may ask with
each of them; a folder given with `--prompts` may replace them, with the same slots. Whoever asks with a template gives
every slot of it: `[...]` behind a slot says that it is a list and what of, `{...}` which keys its mapping has, `(...)`
what it holds or that it may be empty. `{}` inside of `[]` is a list of such mappings."""


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
        ("Protocols", "`--protocol NAME`; your own is `module:Class`.", table(("name", "what it is"), protocols)),
        ("Presets", "`--preset NAME`.", table(("name", "protocol", "paper", "its models"), presets)),
        ("Tasks", "`--task NAME`.", table(("name", "what it is", "its file"), tasks)),
        ("Models", "`--model NAME`, `--role ROLE=NAME`.", table(("name", "what it is"), models)),
        ("Capabilities of models", "What each form of name declares.", table(("name", *kinds), can)),
        ("Encoders", "`--encoder NAME`.", table(("name", "what it does"), encoders)),
        ("Templates", _TEMPLATES, table(("template", "read by", "slots"), templates)),
    )


def _page(*sections: tuple[str, str, str]) -> str:
    parts = [part for heading, *rest in sections for part in (f"## {heading}", *rest)]
    return page("# Names", "What a run can name, on the command line, in a configuration and from Python.", *parts)
