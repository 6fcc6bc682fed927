"""Task registry, for specs such as `boolq:PATH`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.tasks.asap import asap_task
from moot.protocols.tasks.hallusionbench import hallusionbench_task
from moot.protocols.tasks.labelled_texts import labelled_texts_task
from moot.protocols.tasks.own_cases.columns import FIELDS, SPLIT
from moot.protocols.tasks.own_cases.task import own_cases_task
from moot.protocols.tasks.own_cases.task_detection import detect_spec, path_exists
from moot.protocols.tasks.own_files import OWN_CLAIMS, SUBJECTS
from moot.protocols.tasks.public_claims import FEVER, HALUEVAL, QAGS, TRUTHFULQA
from moot.protocols.tasks.public_questions import BOOLQ, COSMOSQA, GSM8K, nq_task
from moot.protocols.tasks.replies import REPLIES
from moot.protocols.tasks.sample import SAMPLE_ESSAYS, bundled
from moot.protocols.tasks.source import locate
from moot.protocols.tasks.spec import TaskSpec
from moot.protocols.tasks.symptoms import symptoms_task
from moot.protocols.tasks.task import LoadPicture, Task

_LIKE_A_FILE = re.compile(r"[./\\]")


@dataclass(frozen=True)
class TaskKind:
    """Built-in task, as in the documentation.

    Attributes:
        form: syntax of its spec.
        about: subject, in one line.
        layout: required content of the file; empty for a task without one.
        options: what can be written behind the path as `:OPTION=VALUE`, with what it does.
        columns: the fields whose columns can be written behind the path as `:FIELD=COLUMN,FIELD=COLUMN`.
        claims: whether its cases are claims to check, or can be by `:as=claims`.
        of_source: gives the task of a source, a spec and a name; of what is bundled where the form takes no path.
        of_path: gives the task of a path and a spec, where it is no source. Options come by name to either.
    """

    form: str
    about: str
    layout: str = ""
    options: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    columns: tuple[str, ...] = field(default=(), kw_only=True)
    claims: bool = field(default=False, kw_only=True)
    of_source: Callable[..., Task] | None = field(default=None, kw_only=True, repr=False, compare=False)
    of_path: Callable[..., Task] | None = field(default=None, kw_only=True, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Prefix of a spec."""
        return self.form.partition(":")[0]

    def task(self, spec: TaskSpec, written: str) -> Task:
        """Task of a parsed spec, with its original text. Raises like `open_task`."""
        more = spec.options | spec.columns
        if self.of_source is None:
            assert self.of_path is not None, "a kind has one of the two"
            return self.of_path(spec.path, written, **more)
        return self.of_source(locate(spec.path) if spec.path else bundled(self.name), written, self.name, **more)


def _sample(name: str, about: str, of_source: Callable[..., Task], *, claims: bool = False) -> TaskKind:
    return TaskKind(name, f"{about}, bundled with moot", claims=claims, of_source=of_source)


_KINDS = (
    _sample("sample", "72 yes/no questions with passages", BOOLQ.task),
    _sample("sample-replies", "12 replies to judge, good and bad", REPLIES.task),
    _sample("sample-subjects", "8 subjects to debate, some with facts", SUBJECTS.task),
    _sample("sample-symptoms", "40 made-up complaints, ten conditions as labels", labelled_texts_task),
    _sample(
        "sample-essays",
        "8 made-up school essays, two traits each, scores of two made-up raters",
        SAMPLE_ESSAYS.task,
    ),
    _sample("sample-problems", "24 made-up arithmetic word problems", GSM8K.task),
    _sample(
        "sample-claims",
        "40 made-up claims with passages, half of them hallucinated",
        OWN_CLAIMS.task,
        claims=True,
    ),
    TaskKind(
        "asap:PATH[:set=7,8]",
        "ASAP-AES essays, a case per essay and trait, compared with each rater's score",
        "training_set_rel3.tsv as downloaded; only sets 7 and 8 have trait scores",
        options={"set": "the essay sets to read: 7, 8 or 7,8"},
        of_source=asap_task,
    ),
    TaskKind(
        "boolq:PATH",
        "BoolQ: yes/no questions about a passage",
        "JSON Lines: question, answer (true/false); optional passage, title, id",
        of_source=BOOLQ.task,
    ),
    TaskKind(
        "cases:FILE[:question=COLUMN,gold=COLUMN]",
        "your own questions: multiple choice, closed labels, yes/no, numbers or short answers",
        "JSON Lines, JSON, CSV, Parquet or a data set's folder: question; optional choices, labels, gold, "
        "passage, title, images, documents, group, id",
        columns=(*FIELDS, SPLIT),
        of_path=own_cases_task,
    ),
    TaskKind(
        "claims:PATH",
        "claims of your own, supported or hallucinated",
        "CSV or JSON Lines: claim; optional label, id, passage, documents, images, group, part, category",
        claims=True,
        of_source=OWN_CLAIMS.task,
    ),
    TaskKind(
        "cosmosqa:PATH",
        "CosmosQA: four answers to a question about a short story, labels A to D",
        "CSV or JSON Lines: id, question, answer0 to answer3, label (0-3, empty or missing); optional context",
        of_source=COSMOSQA.task,
    ),
    TaskKind(
        "fever:PATH",
        "FEVER: claims that evidence supports or refutes; those without enough evidence are left out",
        "JSON Lines: claim, label (SUPPORTS, REFUTES, NOT ENOUGH INFO); optional evidence (text or pointers)",
        claims=True,
        of_source=FEVER.task,
    ),
    TaskKind(
        "gsm8k:PATH",
        "GSM8K: word problems, answers compared as numbers",
        "JSON Lines: question, answer (a solution that ends in #### and the number); optional id",
        of_source=GSM8K.task,
    ),
    TaskKind(
        "hallusionbench:DIR[:pictures=present|none]",
        "HallusionBench: yes/no questions about pictures, each as the claim that the answer is yes",
        "the folder with HallusionBench.json and, below it, the authors' pictures",
        options={"pictures": "present: leave out questions whose picture is not there; none: show no picture"},
        claims=True,
        of_path=hallusionbench_task,
    ),
    TaskKind(
        "halueval:PATH",
        "HaluEval: right and hallucinated answers, responses or summaries; or replies marked by people",
        "qa_data, dialogue_data, summarization_data or general_data .json as downloaded",
        claims=True,
        of_source=HALUEVAL.task,
    ),
    TaskKind(
        "labels:PATH",
        "texts, and the label that fits each best, of up to 200 that the file names",
        "CSV or JSON Lines: text, label; optional aliases, id, question, documents",
        of_source=labelled_texts_task,
    ),
    TaskKind(
        "nq:PATH[:as=claims]",
        "NQ-open: questions with short answers, exact match and token F1; or claims that are all supported",
        "JSON Lines: question, answer (a text, or a list of right texts); optional passage, title, id",
        options={"as": "questions, or claims: each question with its first answer"},
        claims=True,
        of_source=nq_task,
    ),
    TaskKind(
        "qags:PATH",
        "QAGS: a claim per sentence of a summary, the article as passage, the label of most of three people",
        "mturk_cnndm.jsonl or mturk_xsum.jsonl as downloaded",
        claims=True,
        of_source=QAGS.task,
    ),
    TaskKind(
        "replies:PATH",
        "existing replies, for judges only",
        "CSV or JSON Lines: reply; optional id, prompt, system, evidence, role, domain, group",
        of_source=REPLIES.task,
    ),
    TaskKind(
        "subjects:PATH",
        "subjects without a right answer",
        "CSV or JSON Lines: subject; optional id, facts. Or .txt: one subject a line",
        of_source=SUBJECTS.task,
    ),
    TaskKind(
        "symptoms:DIR",
        "the public table of symptoms: each distinct set of symptoms once, 41 diseases, balanced",
        "the downloaded folder: dataset.csv and, for documents, symptom_Description.csv",
        of_path=symptoms_task,
    ),
    TaskKind(
        "truthfulqa:PATH",
        "TruthfulQA: per question two claims, its best answer and an incorrect one",
        "TruthfulQA.csv as downloaded",
        claims=True,
        of_source=TRUTHFULQA.task,
    ),
)

TASKS: Mapping[str, TaskKind] = MappingProxyType({kind.name: kind for kind in _KINDS})
"""The built-in tasks by name."""


def open_task(spec: str, load_picture: LoadPicture | None = None) -> Task:
    """The task that a spec names; nothing of its content is read yet.

    Args:
        spec: `NAME`, `NAME:PATH`, split at the first colon, `NAME:PATH:OPTION=VALUE`, or
            `NAME:PATH:FIELD=COLUMN,FIELD=COLUMN`; the path `-` is standard input. A bare file or folder is read by the
            task that fits its columns, whose spec the task then has.
        load_picture: reads the pictures that a file names, such as `moot.load_image`; without it the cases come
            without them.

    Raises:
        ConfigError: no such task, a path is missing or not wanted, an option or field is unknown or has a wrong value,
            or no task fits a bare file.
        TaskFileError: there is no such file or folder, it is the other one of the two, or the task must read twice
            what can be read only once.

    >>> open_task("sample").labels
    ('Yes', 'No')
    """
    found = TaskSpec.parse(spec)
    kind = TASKS.get(found.name)
    if kind is None:
        if _LIKE_A_FILE.search(found.name) or path_exists(spec) or path_exists(found.name):
            return open_task(detect_spec(spec), load_picture)
        raise unknown_name("task", found.name, TASKS)
    if ":" not in kind.form:
        if found.path is not None:
            raise ConfigError(f"task {found.name!r} takes no path: write `{kind.form}`")
        return kind.task(found, spec)
    found = _taken_apart(found, kind)
    if not found.path:
        raise ConfigError(f"task {found.name!r} needs a path: write `{kind.form}`")
    return replace(kind.task(found, spec), load_picture=load_picture)


def _taken_apart(found: TaskSpec, kind: TaskKind) -> TaskSpec:
    if kind.options:
        return found.with_options(kind.options)
    return found.with_columns(kind.columns) if kind.columns else found


def absolute_spec(spec: str) -> str:
    """Spec with an absolute path, for other processes; unchanged without a path.

    Raises:
        ConfigError: an option is unknown.
    """
    found = TaskSpec.parse(spec)
    kind = TASKS.get(found.name)
    if kind is None or not found.path:
        return spec
    found = _taken_apart(found, kind)
    return str(replace(found, path=str(Path(found.path or "").expanduser().absolute())))
