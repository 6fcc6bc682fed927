"""Row of a task's source, with validators that return its fields or raise a named error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from moot.protocols.case import Case, Reference, is_shared_id
from moot.protocols.errors import TaskFileError
from moot.protocols.long_texts import MOST_CHARACTERS, characters
from moot.protocols.text.folding import fold

_WORDS = frozenset({"n/a", "n.a.", "nan", "none", "null"})
_IN_CAPITALS = "NA"
"""Missing value in R's notation; `Na` may be sodium."""


def is_blank(value: object) -> bool:
    """Whether a value is missing: null, NaN (as pandas writes it), or blank text. Raises nothing."""
    return (
        value is None or (isinstance(value, float) and value != value) or (isinstance(value, str) and not value.strip())
    )


def is_absent(value: object, labels: Iterable[str] = ()) -> bool:
    """Whether a cell has no right answer, so that its case is debated and not scored. Raises nothing.

    A blank cell has none, nor has one with a word for a missing value, unless that is a label.

    Args:
        value: of the cell.
        labels: permitted answers, with the texts of choices; empty for free answers.

    >>> is_absent(" "), is_absent("N/A"), is_absent("N/A", ["Yes", "No", "n/a"]), is_absent("Na"), is_absent(0)
    (True, True, False, False, False)
    """
    if not isinstance(value, str) or is_blank(value):
        return is_blank(value)
    text = value.strip()
    return (text.casefold() in _WORDS or text == _IN_CAPITALS) and fold(text) not in map(fold, labels)


def absent_gold_warning(absent: int, cases: int) -> str:
    """Remark about the cases that are not scored; empty where none or all are. Raises nothing."""
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
        problem: error of an unreadable row; None for a readable one.
    """

    file: str
    line: int
    values: Mapping[str, object]
    problem: TaskFileError | None = None

    def error(self, field: str, expected: str) -> TaskFileError:
        """Builds the error that names this row; does not raise it."""
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
        """Returns a field's text, unchanged. With a default the field may be missing or empty.

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
            TaskFileError: see `text`.
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
        """Returns a field's list of texts; empty when the field is missing, null or an empty list.

        Raises:
            TaskFileError: it is no list, or one of its texts is invalid for `text`.
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
        """Returns the row's id: text, or a whole number as text; empty where one is to be generated.

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
        """Checks the total length of the case's texts.

        Raises:
            TaskFileError: it is too large; names the row's longest field, and the length.
        """
        size = case.characters()
        if size > MOST_CHARACTERS:
            sizes = {field: characters(value) for field, value in self.values.items()}
            longest = max(sizes, key=sizes.__getitem__, default="")
            expected = f"expected at most {MOST_CHARACTERS:,} characters in all texts of a case together"
            raise self.error(longest, f"{expected}, found {size:,}")


class ParsedCase(NamedTuple):
    """Case parsed from a row, with its right answer.

    Attributes:
        case: its id is empty where one is to be generated.
        gold: its gold label; None without one.
        reference: further data on the right answer.
    """

    case: Case
    gold: str | None = None
    reference: Reference = Reference()
