r"""LaTeX in JSON that was written with one backslash: `\frac` and `\theta` are commands, no form feed and no tab.

JSON reads `\b`, `\f`, `\n`, `\r` and `\t` as control characters, so that half of LaTeX's commands lose their first
letter without an error. `mend_escapes` doubles such a backslash, and every one that JSON does not know.
"""

from __future__ import annotations

import re

_T = (
    r"heta|imes|au|anh|an(?!\s+[a-z]{2})|ext(?:bf|it|rm|sf|tt|sc|sl|up|md|normal|style|color|width|superscript"
    r"|subscript)?|frac|o|op|ag|iny|ilde|herefore|hinspace|hickapprox|hicksim|binom|woheadrightarrow"
    r"|riangle(?:left|right|lefteq|righteq|q|down)?"
)
_N = (
    r"abla|atural|e[gq](?!\.)|earrow|warrow|ewline|ewcommand|geq(?:q|slant)?|gtr|leq(?:q|slant)?|cong|ot|otag|otin"
    r"|otni|olimits|onumber|ormalsize|icefrac|obreak(?:space)?|prec(?:eq)?|succ(?:eq)?|su[bp]seteq|shortmid"
    r"|(?:[lL]eft|[rR]ight|[lL]eftright)arrow|[vV][dD]ash|triangle(?:left|right)(?:eq)?"
)
_R = (
    r"ho|m|ight|ight(?:left)?arrow|ightleftharpoons|ightharpoon(?:up|down)|ightsquigarrow|angle|brac[ek]|ceil|floor"
    r"|oot|[vV]ert|times|estriction|isingdotseq|ef|aisebox|ule|elax|group|moustache|lap"
)
_WORDS = ("e", "u", "i", "mid", "less", "exists", "parallel", "sim")
"""What is left of a command after `\\n` and may be a word or a variable on a line of its own."""

_ESCAPE = re.compile(  # without groups, which would double the time
    rf"\\(?:n(?=[a-zLRV])(?:{'|'.join(_WORDS)}|{_N})(?![A-Za-z])|\\|'|[bf](?=[A-Za-z])"
    rf"|(?:t(?:{_T})|r(?:{_R}))(?![A-Za-z])|u(?![0-9a-fA-F]{{4}})"
    r'|[^"\\/bfnrtu])',
    re.DOTALL,
)
_LINE_ENDS = (".", ":", ";", ",", "!", "?", "\\n", "\\r")
_NEXT_WORD = re.compile(r"\s+(?:[A-Za-z]{2}|\\\(|\$)|\\n")


def mend_escapes(body: str) -> str:
    r"""JSON text in which a single backslash before a LaTeX command, or where JSON permits none, is doubled.

    `\b` and `\f` before a letter are always LaTeX; `\t`, `\n` and `\r` before the rest of a whole command are, too. A
    rest that may be a word (`\ne`, `\nu`, `\nmid`) is one only where the text has other such commands, or where no
    line could begin. `\'` is an apostrophe. A text without any such backslash is returned itself.

    >>> print(mend_escapes(r'"\frac{1}{2} \theta, \(x\)\nThe end: \\pi"'))
    "\\frac{1}{2} \\theta, \\(x\\)\nThe end: \\pi"
    """
    if "\\" not in body:
        return body
    found = [match for match in _ESCAPE.finditer(body) if match[0] != "\\\\"]
    if not found:
        return body
    latex = any(_is_latex(match[0]) for match in found)
    parts, at = [], 0
    for match in found:
        start, quote = match.start(), match[0] == "\\'"
        if match[0][2:] in _WORDS and not _is_command(body, match, latex):
            continue
        parts += [body[at:start], "" if quote else "\\"]
        at = start + quote
    return "".join([*parts, body[at:]])


def _is_latex(escape: str) -> bool:
    """Whether an escape is nothing but LaTeX; `\\_` and `\\$` may be Markdown."""
    return (escape[1].isalpha() or escape[1] in "([{") and escape[2:] not in _WORDS


def _is_command(body: str, match: re.Match[str], latex: bool) -> bool:
    """Whether `\\n` and a word are a command, not a line that begins with the word."""
    before, word = body[: match.start()][-2:], match[0][2:]
    after = body[match.end() : match.end() + 1]
    goes_on = word not in ("e", "u") and _NEXT_WORD.match(body, match.end())
    is_item = word != "u" and after in (".", ")", ":")
    if before.endswith(_LINE_ENDS) or goes_on or is_item:
        return False
    if latex or before.endswith(('"', "(", "{", "^", "_")) or after in ("$", "}"):
        return True
    return len(word) == 1 and (after == '"' or (word == "e" and before.endswith(" ")))
