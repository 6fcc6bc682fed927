"""Cases from a user's own file or folder, whatever its columns are called: `cases:FILE`.

>>> from moot.protocols.tasks.own_cases.columns import FIELDS
>>> list(FIELDS)[:4]
['question', 'choices', 'labels', 'gold']
"""
