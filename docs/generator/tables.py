"""The pages of record columns, templates and exported metrics."""

from __future__ import annotations

from generator.markdown import code, page, prose, table
from moot.actors.meter import METRICS
from moot.actors.record.schema import COLUMNS, KEYS, ROWS
from moot.protocols.templates import template_headers


def record_page() -> str:
    """The tables of a record and their columns, below how to read it."""
    tables = [(f"[`{name}`](#{name})", ", ".join(map(code, KEYS[name])), ROWS[name]) for name in COLUMNS]
    parts = ["## Tables", table(("table", "key", "rows"), tables)]
    for name, columns in COLUMNS.items():
        rows = [
            (
                code(each.name),
                code(str(each.kind).replace("item: ", "")),
                "yes" if each.volatile else "",
                each.meaning,
            )
            for each in columns
        ]
        parts += [f"### `{name}`", table(("column", "type", "volatile", "meaning"), rows)]
    return page(*parts)


def templates_page() -> str:
    """The prompt templates with their slots."""
    intro = """The prompts that come with moot. A protocol of your own may ask with each of them; a folder given with
`--prompts` may replace them, with the same slots. Whoever asks with a template gives every slot of it: `[...]` behind a
slot says that it is a list and what of, `{...}` which keys its mapping has, `(...)` what it holds or that it may be
empty. `{}` inside of `[]` is a list of such mappings. `moot templates` prints this list."""
    rows = [(code(name), each.readers, each.slots) for name, each in template_headers().items()]
    return page("# Templates", intro, "## Slots", table(("template", "read by", "slots"), rows))


def exported_metrics_page() -> str:
    """The metrics that a run exports to Prometheus."""
    intro = """What a run on Ray exports to Prometheus, which sees each name with `ray_` before it. Every metric also
has the label `protocol`; no label names a debate or a case. [Monitoring](../operate/monitoring.md) says how to scrape
and read them."""
    rows = [
        (code(each.name), each.kind, ", ".join(map(code, each.labels)), prose(f"{each.about} {each.detail}"))
        for each in METRICS
    ]
    return page("# Exported metrics", intro, table(("metric", "kind", "labels", "meaning"), rows))
