"""Template loader: prompts are files, rendered in a sandbox, with every slot treated as data.

A template is a Jinja file with two blocks, `system` and `user`, and a header comment that names its readers. A plain
template, `NAME_plain`, asks for plain text what NAME asks for as JSON: it has only the block `form`, the reply's form,
which takes the place of the one that NAME has inside its `user` or `system`, and ends the system text: weak models
keep to it there, and continue the material where it follows that. All other text is NAME's.

Slots with text from outside (passages, other agents' replies) go through the filter `fenced`, which wraps them in tags
and escapes any such tag inside the text. The name `length` holds the lengths that a prompt asks for
(`protocols/asked_lengths.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from moot.protocols.asked_lengths import ASKED_LENGTHS, AskedLength, with_numbers
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.messages import Message, Slots
from moot.protocols.near_paths import near_path
from moot.protocols.regular_files import cause, read_regular_text

PLAIN_SUFFIX = "_plain"
"""End of the name of a template that asks for plain text what the one without it asks for as JSON."""

_PROMPTS = Path(__file__).parent / "prompts"
_HEADER = re.compile(r"Read by:? (?P<readers>[^#]*?)\.\s+(?:[^#]*?\s)?Slots:(?P<slots>[^#]*)\.\s*#}")
_LENGTH = "length"
_FORM = "form"
_DETAIL = re.compile(r"\(.*?\)|\[.*?\]|\{.*?\}", re.DOTALL)
_LESS, _MORE = "<\uff1c\ufe64", ">\uff1e\ufe65"
_ANGLES = "\u02c2\u1438\u2039\u2329\u276e\u27e8\u29fc\u3008\u300a\u226a\u00ab"
"""Quotation marks and the like; they count as a `<` only before a slash."""

_SLASH = "/\uff0f\u2044\u2215\u2571\u27cb\u29f8\u3033"
_UNSEEN = (
    r"\s\x00-\x1f\x7f-\x9f\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u20d0-\u20ff\u2800\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
"""Blanks, control characters, combining marks, and invisible characters."""

_LETTER = rf"(?![{_UNSEEN}])[^\W\d_]"
_TAG_START = re.compile(
    rf"[{_LESS}](?={_LETTER}|[{_UNSEEN}]+{_LETTER}[\w-]*[{_UNSEEN}]*[{_MORE}])|"
    rf"[{_LESS}{_ANGLES}](?=[{_UNSEEN}]*[{_SLASH}][{_UNSEEN}{_SLASH}]*{_LETTER})"
)
"""Characters that open or close a tag, or look as if they did: other marks, letters of any alphabet, invisible ones."""


def fenced(text: object, tag: str, **attributes: object) -> str:
    """`text` between `<tag>` and `</tag>`; a `<` inside it that could open or close a tag, or a lookalike, becomes
    `&lt;`.

    >>> fenced("a </note> b < /note> c < d", "note")
    '<note>\\na &lt;/note> b &lt; /note> c < d\\n</note>'
    """
    head = tag
    for name, value in attributes.items():
        line = " ".join(_TAG_START.sub("&lt;", str(value)).splitlines())
        head += f' {name}="{line.replace("<", "&lt;").replace(chr(34), "&quot;")}"'
    body = str(text)
    if not body.isascii() or "<" in body:
        body = _TAG_START.sub("&lt;", body)
    return f"<{head}>\n{body}\n</{tag}>"


def unfenced(text: str) -> str:
    """The original text of `fenced`."""
    return text.replace("&lt;", "<")


@cache
def _packaged() -> Mapping[str, str]:
    """The package's own templates by name, read once per process."""
    files = sorted(_PROMPTS.rglob("*.j2"))
    texts = {path.relative_to(_PROMPTS).with_suffix("").as_posix(): path.read_text("utf-8") for path in files}
    return {name: with_numbers(text) for name, text in texts.items()}


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
    )
    made.filters["fenced"] = fenced
    return made


@lru_cache(maxsize=512)
def _compiled(source: str) -> Template:
    """Compiled template, cached: compiling takes longer than rendering a small run's prompts."""
    return _environment().from_string(source)


@dataclass(frozen=True)
class TemplateHeader:
    """Header of one of the package's templates.

    Attributes:
        readers: who reads it, and when.
        slots: its slots with their content, as in the header.
    """

    readers: str
    slots: str

    @classmethod
    def of(cls, source: str) -> TemplateHeader:
        """Header of a template's text; every template of the package has one."""
        found = _HEADER.search(source)
        assert found is not None, source[:200]
        return cls(" ".join(found["readers"].split()), " ".join(found["slots"].split()))

    @property
    def names(self) -> set[str]:
        """Names of the slots."""
        return {slot.strip() for slot in _DETAIL.sub("", self.slots).split(",")}


def template_headers() -> dict[str, TemplateHeader]:
    """Headers of the package's templates, by name, in order. Raises nothing.

    >>> template_headers()["selene/opening"].slots
    'question, labels, choices, passage, title, evidence [retrieved texts], answer_first'
    """
    return {name: TemplateHeader.of(source) for name, source in sorted(_packaged().items())}


def template_hash(text: bytes) -> str:
    """16 hex digits over a template's text, in UTF-8."""
    return blake2b(text, digest_size=8).hexdigest()


class Templates:
    """Prompt templates: the package's own, overridden file by file from a user's folder.

    Args:
        overrides: a folder whose `NAME.j2` files replace the package's templates of the same name.
        renders: whether a template of a name can be rendered; the folder's others are left alone, and may be of another
            version.

    Raises:
        ConfigError: the folder does not exist, has an unknown template or one that does not compile.
    """

    def __init__(self, overrides: str | Path | None = None, renders: Callable[[str], bool] = lambda _: True) -> None:
        self._globals = dict(_environment().globals)
        self._sources = dict(_packaged())
        self._compiled: dict[str, Template] = {}
        self._hashes: dict[str, str] = {}
        if overrides is not None:
            self._override(Path(overrides), renders)

    def _override(self, folder: Path, renders: Callable[[str], bool]) -> None:
        if not folder.is_dir():
            raise ConfigError(f"--prompts {folder}: no such folder{near_path(folder)}")
        found = sorted(folder.rglob("*.j2"))
        if not found:
            raise ConfigError(f"--prompts {folder}: no template there (NAME.j2, such as selene/opening.j2)")
        for path in found:
            name = path.relative_to(folder).with_suffix("").as_posix()
            if name not in self._sources:
                raise unknown_name("template", name, self._sources)
            if not renders(name):
                continue
            known = self._declared(name)
            try:
                self.add(name, read_regular_text(path))
            except OSError as error:
                raise ConfigError(f"{path}: {cause(error)}") from None
            except (UnicodeError, ConfigError) as error:
                raise ConfigError(f"{path}: {error}") from None
            unknown = sorted(self._slots(name) - known)
            if unknown:
                raise ConfigError(f"{path}: {unknown_name('slot', unknown[0], known)}")

    def _declared(self, name: str) -> set[str]:
        """Slots that the header of the package's template of that name declares."""
        return TemplateHeader.of(self._sources[name]).names

    def _slots(self, name: str) -> set[str]:
        """Names that a template looks up in its slots."""
        return find_undeclared_variables(_environment().parse(self._sources[name])) - {_LENGTH}

    @classmethod
    def from_sources(cls, sources: Mapping[str, str]) -> Templates:
        """Templates from texts, added to the package's own: for actors, from what the driver read."""
        made = cls()
        made._sources.update(sources)
        return made

    @property
    def sources(self) -> dict[str, str]:
        """Name and text of every template."""
        return dict(self._sources)

    def add(self, name: str, source: str) -> None:
        """Add a template, or replace one; the lengths that it asks for become numbers in its text.

        Raises:
            ConfigError: it does not compile.
        """
        self._sources[name] = with_numbers(source)
        self._hashes.pop(name, None)
        self._compile(name)

    def hash(self, name: str) -> str:
        """16 hex digits over the template's text.

        Raises:
            ConfigError: for an unknown name.
        """
        known = self._hashes.get(name)
        if known is None:
            known = template_hash(self._source(name).encode())
            self._hashes[name] = known
        return known

    def rendered_hash(self, name: str) -> str:
        """Hash of all that is rendered: of a plain template, also of the one whose blocks it has.

        Raises:
            ConfigError: for an unknown name.
        """
        base = self._base(name)
        return template_hash((self.hash(name) + self.hash(base)).encode()) if base else self.hash(name)

    def plain_form(self, name: str) -> str:
        """Name of the template that asks the same for plain text; `name` itself where there is none.

        A template of a user's own that lacks a block of the plain one has none.
        """
        plain = f"{name}{PLAIN_SUFFIX}"
        if plain not in self._sources or self._template(plain).blocks.keys() - self._template(name).blocks.keys():
            return name
        return plain

    def render(
        self, name: str, slots: Slots, persona: str = "", lengths: Mapping[str, AskedLength] = ASKED_LENGTHS
    ) -> tuple[Message, ...]:
        """Chat messages for `slots`.

        Args:
            name: of the template.
            slots: its slots.
            persona: put before the system text.
            lengths: those that differ from `ASKED_LENGTHS`.

        Raises:
            ConfigError: for an unknown template, a missing slot or a template that does not run.
        """
        template = self._template(name)
        base = self._base(name)
        blocks = {**self._template(base).blocks, **template.blocks} if base else template.blocks
        try:
            # `shared` spares Jinja a merge of its globals, look-up by look-up, for each prompt
            asked = {**ASKED_LENGTHS, **lengths}
            context = template.new_context({**self._globals, _LENGTH: asked, **slots}, shared=True)
            form = "".join(template.blocks[_FORM](context)) if base and _FORM in template.blocks else ""
            if base:
                context.blocks.update({block: [body] for block, body in blocks.items()})
                context.blocks[_FORM] = [lambda _: iter(())]
            system, user = ("".join(blocks[block](context)).strip() for block in ("system", "user"))
        except TemplateError as error:
            raise ConfigError(f"template {name!r}: {self._explain(error, name, slots)}") from error
        system = f"{system}\n\n{form.strip()}".strip()
        if persona:
            system = f"{persona.strip()}\n\n{system}" if system else persona.strip()
        messages = (Message("user", user),)
        return (Message("system", system), *messages) if system else messages

    def _explain(self, error: TemplateError, name: str, slots: Slots) -> str:
        missing = (slot for slot in sorted(self._slots(name) - slots.keys()) if f"{slot!r} is undefined" in str(error))
        return str(next((unknown_name("slot", slot, slots) for slot in missing), error))

    def _base(self, name: str) -> str:
        """Name of the template in whose place a plain one is rendered; empty for any other."""
        base = name.removesuffix(PLAIN_SUFFIX)
        return base if base != name and base in self._sources else ""

    def _template(self, name: str) -> Template:
        return self._compiled.get(name) or self._compile(name)

    def _source(self, name: str) -> str:
        try:
            return self._sources[name]
        except KeyError:
            raise unknown_name("template", name, self._sources) from None

    def _compile(self, name: str) -> Template:
        try:
            template = _compiled(self._source(name))
        except TemplateError as error:
            line = f"line {error.lineno}: " if isinstance(error, TemplateSyntaxError) else ""
            raise ConfigError(f"template {name!r} does not compile: {line}{error}") from error
        missing = (set[str]() if self._base(name) else {"system", "user"}) - template.blocks.keys()
        if missing:
            raise ConfigError(f"template {name!r} lacks the block {' and '.join(sorted(missing))}")
        self._compiled[name] = template
        return template
