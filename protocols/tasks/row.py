"""One row of a task's source, with the checks that turn its fields into values or a named error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from moot.protocols.case import Case, Reference, is_shared_id
from moot.protocols.errors import TaskFileError
from moot.protocols.long_texts import MOST_CHARACTERS, characters
from moot.protocols.text.labels import fold

_WORDS = frozenset({"n/a", "n.a.", "nan", "none", "null"})
_IN_CAPITALS = "NA"
"""Missing value in R's notation; `Na` may be sodium."""


def is_blank(value: object) -> bool:
    """Whether a value is none: null, not a number (as pandas writes it), or blank text. Raises nothing."""
    return (
        value is None or (isinstance(value, float) and value != value) or (isinstance(value, str) and not value.strip())
    )


def is_absent(value: object, labels: Iterable[str] = ()) -> bool:
    """Whether a cell has no right answer, so that its case is debated and not scored. Raises nothing.

    What `is_blank` does, and so does a word for it, unless it is one of the labels.

    Args:
        value: of the cell.
        labels: what an answer may be, with the texts of choices; of none where answers are free.

    >>> is_absent(" "), is_absent("N/A"), is_absent("N/A", ["Yes", "No", "n/a"]), is_absent("Na"), is_absent(0)
    (True, True, False, False, False)
    """
    if not isinstance(value, str) or is_blank(value):
        return is_blank(value)
    text = value.strip()
    return (text.casefold() in _WORDS or text == _IN_CAPITALS) and fold(text) not in map(fold, labels)


def absent_gold_warning(absent: int, cases: int) -> str:
    """One line about the cases that are not scored; empty where that is none of them, or all. Raises nothing."""
    if not 0 < absent < cases:
        return ""
    return f"{absent:,} of {cases:,} cases have no gold answer: they are not scored"


def shown(value: object) -> str:
    """Short text of an invalid value for an error, on one line.

    >>> shown(None), shown(True), shown([1]), shown("maybe")
    ('null', 'true', 'a list', "'maybe'")
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    text = repr(value[:61] if isinstance(value, str) else value)
    return text if len(text) <= 64 else f"{text[:60]}..."


@dataclass(frozen=True)
class Row:
    """Row as read, before its fields are interpreted.

    Attributes:
        file: the source as the user named it.
        line: 1-based line in it (CSV: the line on which the record starts; a JSON list and
            cases in memory: index + 1).
        values: the fields; empty when the row could not be read.
        problem: why the row could not be read at all; None for a readable one.
    """

    file: str
    line: int
    values: Mapping[str, object]
    problem: TaskFileError | None = None

    def error(self, field: str, expected: str) -> TaskFileError:
        """Gives the error that names this row; raises nothing itself."""
        return TaskFileError(self.file, self.line, field, expected)

    def require(self, fields: Iterable[str]) -> None:
        """Checks that the fields exist, whatever their values.

        Raises:
            TaskFileError: one is missing.
        """
        wanted = tuple(fields)
        for field in wanted:
            if field not in self.values:
                raise self.error(field, f"is missing; expected the fields {', '.join(wanted)}")

    def text(self, field: str, default: str | None = None) -> str:
        """Gives a field's text, untouched. With a default the field may be missing or empty.

        Raises:
            TaskFileError: it is missing, no text, blank, or contains half of a surrogate pair (which no
                encoding can carry to a model).
        """
        if field not in self.values:
            if default is not None:
                return default
            raise self.error(field, "is missing; expected text")
        return self.checked(field, self.values[field], may_be_empty=default is not None)

    def checked(self, field: str, value: object, *, may_be_empty: bool = False) -> str:
        """Returns `value` if it is valid text for `field`.

        Raises:
            TaskFileError: as `text`.
        """
        if not isinstance(value, str):
            raise self.error(field, f"expected text, found {shown(value)}")
        if not may_be_empty and not value.strip():
            raise self.error(field, "expected text, found none")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise self.error(field, "expected whole characters, found half of a surrogate pair") from None
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        """Gives a field's list of texts; empty when the field is missing, null or an empty list.

        Raises:
            TaskFileError: it is no list, or one of its texts is none that `text` would give.
        """
        value = self.values.get(field)
        if value is None:
            return ()
        if not isinstance(value, (list, tuple)):
            raise self.error(field, f"expected a list of texts, found {shown(value)}")
        return tuple(self.checked(field, text) for text in value)

    def listed(self, field: str) -> tuple[str, ...]:
        """As `texts`; the field may also be one text, which semicolons separate into several, outer space removed."""
        if not isinstance(self.values.get(field), str):
            return self.texts(field)
        pieces = (piece.strip() for piece in self.text(field, default="").split(";"))
        return tuple(piece for piece in pieces if piece)

    def identity(self, field: str = "id") -> str:
        """Gives the row's id: text, or a whole number as text; empty where it has none, so that one is generated.

        Raises:
            TaskFileError: it is blank or neither.
        """
        if field not in self.values:
            return ""
        value = self.values[field]
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        found = self.checked(field, value)
        if is_shared_id(found):
            raise self.error(field, f"{found!r} is the name of a reply that cases share; give another")
        return found

    def check_size(self, case: Case) -> None:
        """Checks that the texts of the case that this row makes are not too long together.

        Raises:
            TaskFileError: they are; names the row's longest field, and how long they are.
        """
        size = case.characters()
        if size > MOST_CHARACTERS:
            sizes = {field: characters(value) for field, value in self.values.items()}
            longest = max(sizes, key=sizes.__getitem__, default="")
            expected = f"expected at most {MOST_CHARACTERS:,} characters in all texts of a case together"
            raise self.error(longest, f"{expected}, found {size:,}")


class ParsedCase(NamedTuple):
    """A case as a row gives it, with what is known of its right answer.

    Attributes:
        case: with an empty id where one is to be generated.
        gold: its gold label; None where there is none.
        reference: what else is known.
    """

    case: Case
    gold: str | None = None
    reference: Reference = Reference()
