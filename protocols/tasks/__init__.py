"""Tasks: built-in ones, users' own cases, and the scoring of answers.

>>> from moot.protocols.tasks import Task, is_correct, open_task
>>> open_task("sample").name
'sample'
>>> mine = Task.from_cases([{"question": "Is water wet?", "labels": ["Yes", "No"], "gold": "Yes"}])
>>> mine.validate().gold
{'Yes': 1, 'No': 0}
>>> is_correct("No", "Yes")
False
"""

from __future__ import annotations

from moot.protocols.tasks.registry import TASKS, TaskKind, open_task
from moot.protocols.tasks.scoring import alike, is_correct, same_answer
from moot.protocols.tasks.task import Task, TaskSummary

__all__ = ["TASKS", "Task", "TaskKind", "TaskSummary", "alike", "is_correct", "open_task", "same_answer"]
