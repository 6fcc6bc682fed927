"""Public table of symptoms and diseases in its original format: a folder with `dataset.csv` and descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from types import MappingProxyType

from moot.protocols.case import Case
from moot.protocols.errors import TaskFileError
from moot.protocols.tasks.formats import csv_rows
from moot.protocols.tasks.label_set import LabelSet
from moot.protocols.tasks.row import ParsedCase, Row
from moot.protocols.tasks.source import Source, locate_within
from moot.protocols.tasks.task import Task
from moot.protocols.text.folding import fold, label_order
from moot.protocols.text.labels import canonical_label

_SPELLINGS = """\
(vertigo) Paroymsal Positional Vertigo: vertigo, positional vertigo, paroxysmal positional vertigo, \
(vertigo) paroxysmal positional vertigo, benign paroxysmal positional vertigo, BPPV
Acne: acne vulgaris
AIDS: acquired immunodeficiency syndrome, acquired immune deficiency syndrome, HIV/AIDS
Alcoholic hepatitis: alcohol-related hepatitis, alcohol-associated hepatitis
Allergy: allergies, allergic reaction
Bronchial Asthma: asthma
Cervical spondylosis: cervical osteoarthritis
Chicken pox: chickenpox, varicella
Chronic cholestasis: cholestasis
Common Cold: cold, the common cold
Dengue: dengue fever
Diabetes: diabetes mellitus
Dimorphic hemmorhoids(piles): Dimorphic hemorrhoids(piles), dimorphic hemorrhoids (piles), \
dimorphic hemorrhoids, hemorrhoids (piles), hemorrhoids, haemorrhoids, piles
Drug Reaction: adverse drug reaction, drug reactions, ADR
Fungal infection: fungal infections, mycosis
Gastroenteritis: gastro-enteritis
GERD: gastroesophageal reflux disease, gastro-oesophageal reflux disease, \
gastroesophageal reflux disease (GERD), GORD
Heart attack: myocardial infarction, acute myocardial infarction
Hepatitis A: HAV, HAV infection, viral hepatitis A
Hepatitis B: HBV, HBV infection, viral hepatitis B
Hepatitis C: HCV, HCV infection, viral hepatitis C
Hepatitis D: HDV, HDV infection, hepatitis delta, viral hepatitis D
Hepatitis E: HEV, HEV infection, viral hepatitis E
Hypertension: high blood pressure, arterial hypertension, HTN
Hyperthyroidism: overactive thyroid
Hypoglycemia: hypoglycaemia, low blood sugar
Hypothyroidism: underactive thyroid
Impetigo: impetigo contagiosa
Jaundice: icterus
Migraine: migraine headache
Osteoarthristis: osteoarthritis, degenerative arthritis
Paralysis (brain hemorrhage): paralysis, brain hemorrhage, brain haemorrhage, intracerebral hemorrhage, \
intracerebral haemorrhage, hemorrhagic stroke, haemorrhagic stroke
Peptic ulcer diseae: peptic ulcer disease, peptic ulcer, PUD
Tuberculosis: TB
Typhoid: typhoid fever, enteric fever
Urinary tract infection: UTI
Varicose veins: varicose vein
"""

SPELLINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        fold(name): tuple(spellings.split(", "))
        for name, spellings in (line.split(": ") for line in _SPELLINGS.splitlines())
    }
)
"""Aliases by the folded name in the table; missing diseases have none."""


TABLE, DESCRIPTIONS = "dataset.csv", "symptom_Description.csv"
"""Files to read from the folder; the second is optional."""

QUESTION = "Which disease fits the symptoms best?"
"""Question of every case."""


def symptoms_task(folder: str, spec: str) -> Task:
    """Task over the table; `open_task("symptoms:DIR")` is the usual way to it.

    Raises:
        TaskFileError: there is no such folder, or no table in it.
    """
    source = locate_within(folder, TABLE)
    if source is None:
        raise TaskFileError(folder, 0, "", f"expected a folder with {TABLE}, found none in it")
    table = _SymptomTable(source, locate_within(folder, DESCRIPTIONS))
    return Task(spec, "symptoms", folder, labels=None, replayable=True, read=table.rows, parse=table.parse)


class _SymptomTable:
    """Distinct rows of the table by disease; the public file repeats each about sixteen times."""

    def __init__(self, table: Source, descriptions: Source | None) -> None:
        self._table, self._descriptions = table, descriptions
        self._labels: tuple[str, ...] = ()
        self._aliases: tuple[tuple[str, ...], ...] = ()
        self._documents: tuple[str, ...] = ()

    def rows(self) -> Iterator[Row]:
        """Rows, one per distinct set of symptoms of a disease: the first of each disease, then the second of each ...

        So the first N are as many of each disease as there are, whatever N. The diseases come by name, and so do
        the labels: the order of the file reveals nothing.

        Raises:
            TaskFileError: a file cannot be read, a row of it lacks its disease or symptoms, or there are fewer than
                two diseases.
        """
        found = self._distinct()
        diseases = sorted(found, key=label_order)
        self._name(diseases, found)
        for level in zip_longest(*(found[disease].values() for disease in diseases)):
            yield from (row for row in level if row is not None)

    def parse(self, row: Row) -> Iterator[ParsedCase]:
        """Builds a case with its disease. Raises nothing: all rows were validated before the first."""
        case = Case(
            id="",
            question=f"{QUESTION}\n\nSymptoms: {', '.join(row.texts('symptoms'))}.",
            labels=self._labels,
            aliases=self._aliases,
            documents=self._documents,
        )
        yield ParsedCase(case, row.text("disease"))

    def _distinct(self) -> dict[str, dict[frozenset[str], Row]]:
        found: dict[str, dict[frozenset[str], Row]] = {}
        for row in csv_rows(self._table, ("Disease", "Symptom_1")):
            if row.problem is not None:
                raise row.problem
            disease = _words(row.text("Disease"))
            symptoms = [_words(row.text(name)) for name in row.values if _is_symptom(row, name)]
            if not symptoms:
                raise row.error("Symptom_1", "expected at least one symptom, found none")
            values = {"disease": disease, "symptoms": tuple(dict.fromkeys(symptoms))}
            found.setdefault(disease, {}).setdefault(frozenset(symptoms), Row(row.file, row.line, values))
        if len(found) < 2:
            raise TaskFileError(self._table.file, 0, "Disease", f"expected at least two diseases, found {len(found)}")
        return found

    def _name(self, diseases: list[str], found: dict[str, dict[frozenset[str], Row]]) -> None:
        names = LabelSet()
        first = {disease: next(iter(found[disease].values())) for disease in diseases}
        for disease in diseases:
            names.add(first[disease], disease, "Disease")
        for disease in diseases:
            for spelling in SPELLINGS.get(fold(disease), ()):
                if canonical_label(spelling, names.labels) in (None, disease):  # a table may list what we call an alias
                    names.add_alias(first[disease], disease, spelling)
        self._labels, self._aliases = names.labels, names.aliases
        self._documents = self._described()

    def _described(self) -> tuple[str, ...]:
        """`DISEASE: description` in the order of the labels; a disease without one has none."""
        if self._descriptions is None:
            return ()
        texts: dict[str, str] = {}
        for row in csv_rows(self._descriptions, ("Disease", "Description")):
            if row.problem is not None:
                raise row.problem
            disease = canonical_label(_words(row.text("Disease")), self._labels, aliases=self._aliases)
            if disease is not None:
                texts.setdefault(disease, f"{disease}: {' '.join(row.text('Description').split())}")
        return tuple(texts[disease] for disease in self._labels if disease in texts)


def _is_symptom(row: Row, name: str) -> bool:
    value = row.values[name]
    return name.startswith("Symptom_") and isinstance(value, str) and bool(value.strip())


def _words(name: str) -> str:
    """Plain text of a name in the table: `dischromic _patches` is `dischromic patches`."""
    return " ".join(name.replace("_", " ").split())
