"""Events of a type as typed columns: SQL over the view `events`, made from the fields of the type's class.

What pydantic would refuse is left out: a required key is absent, or a value has another type. Values are checked by
their JSON types, so that no row becomes an object of Python: those of all fields, and the items of the requested lists
and dictionaries. The keys of nested models are not checked: a value of another form is null there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from moot.deploy.results.recorded_tables import quoted
from moot.protocols.events import DebateEvent, EventData, reads_none

_JSON = "JSON"
_INTEGER = frozenset({"UBIGINT", "BIGINT"})
_SCALARS: dict[Any, tuple[str, frozenset[str]]] = {
    str: ("VARCHAR", frozenset({"VARCHAR"})),
    bool: ("BOOLEAN", frozenset({"BOOLEAN"})),
    int: ("BIGINT", _INTEGER),
    float: ("DOUBLE", _INTEGER | {"DOUBLE"}),
}
"""Type of a column, and JSON types of its values as DuckDB names them, by type of a field."""


def typed_events(event_type: type[DebateEvent], columns: Sequence[str] | None = None, where: str = "true") -> str:
    """Query of the events of a type: `case_id`, `attempt`, `path`, `counted` and columns of the type.

    A text, number or flag is a column of that type; a list, a dictionary and a nested model are a list, a map and a
    struct, whose keys are the recorded ones; anything else is JSON. A column has the field's default where the record
    has no value. The order is that of `read_table`.

    Args:
        event_type: the type.
        columns: names of its fields, without `path`; all when None.
        where: condition in SQL on `case_id`, `attempt`, `path` and `counted`.
    """
    fields = {name: field for name, field in event_type.model_fields.items() if name != "path"}
    paths = {name: _at("$", _key(name, field)) for name, field in fields.items()}
    places = {name: _Place(f"types[{number}]", path) for number, (name, path) in enumerate(paths.items(), 2)}
    forms = {name: _form(field.annotation, ()) for name, field in fields.items()}
    chosen = list(fields if columns is None else columns)
    structure = json.dumps({_key(name, fields[name]): forms[name].structure for name in chosen})
    all_paths = ", ".join(map(quoted, ["$", *paths.values()]))
    checks = ["types[1] = 'OBJECT'"]
    for name, field in fields.items():
        checks += _checks_of_field(field, places[name], with_items=name in chosen)
    values = (f", {_column(name, fields[name], forms[name], places[name])} AS {_name(name)}" for name in chosen)
    return (
        'WITH documents AS (SELECT case_id, attempt, path, counted, "at", written, '
        "TRY_CAST(coalesce(nullif(data, ''), '{}') AS JSON) AS document "
        f"FROM events WHERE kind = {quoted(event_type.kind)} AND ({where})), "
        f"read AS MATERIALIZED (SELECT *, json_type(document, [{all_paths}]) AS types, "
        f"json_transform(document, {quoted(structure)}) AS fields FROM documents) "
        f"SELECT case_id, attempt, path, counted{''.join(values)} FROM read "
        f'WHERE {" AND ".join(f"({check})" for check in checks)} ORDER BY "at", written'
    )


class _Place(NamedTuple):
    """Place of a value in an event's data.

    Attributes:
        types: SQL of its JSON type, or of the types of all its values if the path has a wildcard.
        path: its JSON path.
    """

    types: str
    path: str

    @property
    def is_several(self) -> bool:
        return "*" in self.path

    def inside(self, path: str) -> _Place:
        return _Place(f"json_type(document, {quoted(path)})", path)


class _Form(NamedTuple):
    """Form of the values of an annotation: the structure for `json_transform`, and their JSON types; None for any."""

    structure: Any
    types: frozenset[str] | None


def _form(annotation: Any, within: tuple[type, ...]) -> _Form:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _form(args[0], within)
    if origin in (Union, UnionType):
        arms = [_form(each, within) for each in args if each is not NoneType]
        types = [arm.types for arm in arms]
        either = None if None in types else frozenset[str]().union(*(each for each in types if each is not None))
        is_null = frozenset({"NULL"} if NoneType in args else ())
        return _Form(arms[0].structure if len(arms) == 1 else _JSON, None if either is None else either | is_null)
    if annotation in _SCALARS:
        return _Form(*_SCALARS[annotation])
    if origin is Literal:
        kinds = {type(each) for each in args}
        known = [_SCALARS[kind] for kind in kinds if kind in _SCALARS]
        return _Form(known[0][0] if len(kinds) == 1 else _JSON, frozenset[str]().union(*(types for _, types in known)))
    if (item := _item(annotation)) is not None:
        return _Form([_form(item, within).structure], frozenset({"ARRAY"}))
    if origin in (list, tuple):
        return _Form(_JSON, frozenset({"ARRAY"}))
    if _is_mapping(origin):
        inner = _sql_type(_form(args[1], within).structure)
        return _Form(f"MAP(VARCHAR, {inner})", frozenset({"OBJECT"}))
    if isinstance(annotation, type) and issubclass(annotation, EventData):
        if annotation in within:
            return _Form(_JSON, frozenset({"OBJECT"}))
        fields = annotation.model_fields.items()
        inside = {_key(name, field): _form(field.annotation, (*within, annotation)).structure for name, field in fields}
        return _Form(inside, frozenset({"OBJECT"}))
    return _Form(_JSON, None)


def _sql_type(structure: Any) -> str:
    """SQL of a structure."""
    if isinstance(structure, list):
        return f"{_sql_type(structure[0])}[]"
    if isinstance(structure, dict):
        return f"STRUCT({', '.join(f'{_name(key)} {_sql_type(each)}' for key, each in structure.items())})"
    return str(structure)


def _item(annotation: Any) -> Any:
    """Annotation of the items of a list, or of a tuple of any length; None for anything else."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is list or (origin is tuple and args[1:] == (...,)):
        return args[0]
    return None


def _is_mapping(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _checks_of_field(field: FieldInfo, place: _Place, *, with_items: bool) -> Iterator[str]:
    """Conditions that the value of a field meets in every event of the type."""
    if reads_none(field):
        return
    yield from _checks(field.annotation, place, not field.is_required(), with_items)
    value = f"CAST(json_extract(document, {quoted(place.path)}) AS DOUBLE)"
    for limit in field.metadata:
        if isinstance(limit, Ge):
            yield f"coalesce({value} >= {limit.ge}, true)"
        elif isinstance(limit, Le):
            yield f"coalesce({value} <= {limit.le}, true)"


def _checks(annotation: Any, place: _Place, may_be_absent: bool, with_items: bool) -> Iterator[str]:
    """Conditions that values of an annotation meet."""
    types = _form(annotation, ()).types
    if types is not None:
        allowed = ", ".join(map(quoted, sorted(types)))
        if place.is_several:
            yield f"list_has_all([{allowed}], {place.types})"
        else:
            yield f"{place.types} IN ({allowed})" + f" OR {place.types} IS NULL" * may_be_absent
    elif not may_be_absent:
        yield f"{place.types} IS NOT NULL"
    arms = [each for each in _arms(annotation) if each is not NoneType]
    if len(arms) != 1:
        return
    (arm,) = arms
    if get_origin(arm) is Literal:
        yield _is_one_of(get_args(arm), place)
    elif with_items and (item := _item(arm)) is not None:
        yield from _checks(item, place.inside(f"{place.path}[*]"), True, True)
    elif with_items and _is_mapping(get_origin(arm)):
        yield from _checks(get_args(arm)[1], place.inside(f"{place.path}.*"), True, True)


def _arms(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Annotated:
        return _arms(get_args(annotation)[0])
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _is_one_of(values: Sequence[Any], place: _Place) -> str:
    texts = ", ".join(quoted(each if isinstance(each, str) else json.dumps(each)) for each in values)
    recorded = f"json_extract_string(document, {quoted(place.path)})"
    if place.is_several:
        return f"list_has_all([{texts}], list_filter({recorded}, lambda value: value IS NOT NULL))"
    return f"coalesce({recorded} IN ({texts}), true)"


def _column(name: str, field: FieldInfo, form: _Form, place: _Place) -> str:
    """SQL of a field's value, or of its default."""
    value = f"fields.{_name(_key(name, field))}"
    if reads_none(field):
        checks = " AND ".join(f"({check})" for check in _checks(field.annotation, place, True, True))
        value = f"if({checks}, {value}, NULL)" if checks else value
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    if default is None:
        return value
    given = f"CAST({quoted(json.dumps(default))}::JSON AS {_sql_type(form.structure)})"
    return f"if({place.types} IS NULL, {given}, {value})"


def _key(name: str, field: FieldInfo) -> str:
    """Recorded key of a field."""
    return field.validation_alias if isinstance(field.validation_alias, str) else name


def _at(path: str, key: str) -> str:
    return f'{path}."{key}"'


def _name(column: str) -> str:
    return f'"{column}"'
