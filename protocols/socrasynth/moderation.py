"""Actions of a person: edit the topics, set the contentiousness, ask a question, end the rounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from moot.protocols.floor import Floor
from moot.protocols.messages import Decision, Form
from moot.protocols.socrasynth.events import PersonDecided
from moot.protocols.socrasynth.sides import Topic
from moot.protocols.text.folding import fold

GO_ON, SET_KAPPA, ASK, EDIT_TOPICS, END = "go on", "set kappa", "ask", "edit topics", "end"
EDIT = "edit"
"""The action of the topics form."""

_NUMBERING = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+")
_HOW_TO_EDIT = "To edit the topics, give the whole list as the text, one a line: TITLE: DESCRIPTION"
_HOW_TO_STEER = "\nTo set kappa (the contentiousness), give a number from 0 to 1; to ask, a question for both sides"


class UnusableInput(ValueError):
    """Invalid text of a person; the message gives the reason and the expected form."""


@dataclass(frozen=True, slots=True)
class Guidance:
    """Settings of the next round.

    Attributes:
        topics: topics of the round.
        before: the topics when the person was asked.
        kappa: the contentiousness that a person set; None leaves it to the schedule.
        questions: questions that both sides must answer in it.
        ended: whether a person has ended the rounds.
    """

    topics: tuple[Topic, ...]
    before: tuple[Topic, ...]
    kappa: float | None = None
    questions: tuple[str, ...] = ()
    ended: bool = False

    @property
    def wants_more(self) -> bool:
        """Whether a person's request needs another round."""
        known = {topic.title for topic in self.before}
        new = any(topic.title not in known for topic in self.topics)
        return new or self.kappa is not None or bool(self.questions)


async def edit_topics(
    floor: Floor, topics: Sequence[Topic], remarks: Sequence[str] = (), *, path: str
) -> tuple[Topic, ...]:
    """The topics after a person's edits; unchanged if unattended.

    Args:
        remarks: lines of the form below the topics.
    """
    body = "\n".join([_listed(topics), *remarks])
    guidance = await _consult(floor, topics, "Topics", body, (GO_ON, EDIT), path)
    return guidance.topics


async def moderate(floor: Floor, topics: Sequence[Topic], report: str, number: int) -> Guidance:
    """A person's decisions after a round; path `moderation/round/T`, and `moderation/round/T/N` for each further form.

    After every change the form is shown again, until the answer is `go on` or `end`; after an invalid text it is shown
    with the reason. Each change and each refusal is noted as an event `moderation` at the form's path.

    Args:
        report: the round's scores and the next step.
    """
    title = "Opening" if number == 0 else f"Round {number}"
    actions = (GO_ON, SET_KAPPA, ASK, EDIT_TOPICS, END)
    return await _consult(floor, topics, title, report, actions, f"moderation/round/{number}")


async def _consult(
    floor: Floor, topics: Sequence[Topic], title: str, report: str, actions: tuple[str, ...], path: str
) -> Guidance:
    guidance = Guidance(tuple(topics), tuple(topics))
    how_to = _HOW_TO_EDIT + (_HOW_TO_STEER if SET_KAPPA in actions else "")
    body, again, place = f"{report}\n\n{how_to}", 0, path
    while True:
        decision = await floor.consult(_form(title, body, guidance, actions), path=place)
        if decision.action == GO_ON:
            return guidance
        try:
            guidance = changed(guidance, decision, actions)
        except UnusableInput as error:
            remark = f"Not used: {error}."
        else:
            remark = f"Done: {decision.action}."
        floor.note(
            PersonDecided(path=place, action=decision.action, text=decision.text, by=decision.by, outcome=remark)
        )
        if guidance.ended:
            return guidance
        # Only the first form has the report; further forms are about the decisions.
        edits = EDIT in actions or decision.action == EDIT_TOPICS
        body, again = _body_again(remark, guidance, with_topics=edits), again + 1
        place = f"{path}/{again}"


def _form(title: str, body: str, guidance: Guidance, actions: tuple[str, ...]) -> Form:
    edits = [action for action in actions if action in (EDIT, EDIT_TOPICS)]
    return Form(
        title,
        body,
        actions,
        needs_text=tuple(action for action in actions if action in (SET_KAPPA, ASK)),
        drafts={action: "\n".join(map(_line, guidance.topics)) for action in edits},
    )


def _line(topic: Topic) -> str:
    """A topic on one line, in the form that `read_topics` parses."""
    line = f"{topic.title}: {topic.description}" if topic.description else topic.title
    return " ".join(line.split())


def changed(guidance: Guidance, decision: Decision, actions: Sequence[str]) -> Guidance:
    """Guidance after a decision.

    Raises:
        Unusable: the action is not on the form, or its text is invalid.
    """
    text = decision.text.strip()
    if decision.action not in actions:
        raise UnusableInput(f"{decision.action!r} is not one of: {', '.join(actions)}")
    if decision.action == END:
        return replace(guidance, ended=True)
    if decision.action in (EDIT, EDIT_TOPICS):
        return replace(guidance, topics=read_topics(text, guidance.topics))
    if decision.action == ASK:
        if not text:
            raise UnusableInput("`ask` needs the question as its text")
        return replace(guidance, questions=(*guidance.questions, text))
    return replace(guidance, kappa=read_kappa(text))


def read_kappa(text: str) -> float:
    """Parse a contentiousness from a person's text.

    Raises:
        Unusable: it is not a number from 0 to 1.
    """
    try:
        kappa = float(text)
    except ValueError:
        kappa = -1.0
    if not 0.0 <= kappa <= 1.0:
        raise UnusableInput(f"`set kappa` needs a number from 0 to 1, not {text[:40]!r}")
    return kappa


def read_topics(text: str, known: Sequence[Topic] = ()) -> tuple[Topic, ...]:
    """Parse topics from a person's list, one per line; leading numbers and dashes are dropped.

    Args:
        known: the previous topics; a line equal to one of them in the draft is that topic, and a title of
            theirs with a colon is read as one.

    Raises:
        Unusable: there is none, one has no title, or two have the same title.

    >>> read_topics("1. Cost: who pays\\n2. Safety")
    (Topic(title='Cost', description='who pays'), Topic(title='Safety', description=''))
    """
    unchanged: dict[str, list[Topic]] = {}
    for topic in known:
        unchanged.setdefault(_line(topic), []).append(topic)
    topics = []
    for line in filter(str.strip, text.splitlines()):
        same = unchanged.get(" ".join(line.split()))
        topics.append(same.pop(0) if same else _topic(_NUMBERING.sub("", line).strip(), known))
    if not topics:
        raise UnusableInput("editing needs the whole list as its text, one a line: TITLE: DESCRIPTION")
    titles = [fold(topic.title) for topic in topics]
    repeated = next((topic.title for topic, title in zip(topics, titles, strict=True) if titles.count(title) > 1), None)
    if repeated is not None:
        raise UnusableInput(f"the topic {repeated!r} stands in the list twice")
    return tuple(topics)


def _topic(line: str, known: Sequence[Topic]) -> Topic:
    titles = [topic.title for topic in known if line == topic.title or line.startswith(f"{topic.title}:")]
    title = max(titles, key=len) if titles else line.partition(":")[0]
    if not fold(title):
        raise UnusableInput(f"{line[:40]!r} has no title: expected TITLE: DESCRIPTION")
    return Topic(" ".join(title.split()), line[len(title) :].removeprefix(":").strip())


def _listed(topics: Sequence[Topic]) -> str:
    return "\n".join(["Topics:", *(f"{number}. {_line(topic)}" for number, topic in enumerate(topics, start=1))])


def _body_again(remark: str, guidance: Guidance, *, with_topics: bool) -> str:
    """The remark on the last decision, and all decisions so far.

    Args:
        with_topics: whether the topics are listed even if they are as before.
    """
    parts = [remark]
    if with_topics or guidance.topics != guidance.before:
        parts.append(_listed(guidance.topics))
    if guidance.kappa is not None:
        parts.append(f"Contentiousness of the next round, as you set it: {guidance.kappa:g}")
    if guidance.questions:
        parts.append("\n".join(["Your questions for the next round:", *guidance.questions]))
    return "\n\n".join(parts)
