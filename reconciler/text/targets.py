"""What tenants and clusters wrote, as text that stays text wherever it is shown.

A writer names its target, and each target has its one escape here. None of them mentions a person, makes a link, styles
words or ends the place that the text has, and each leaves the words readable. One escape serves all chats: services
change their markup, Apprise knows 180 of them and converts for some, so that what has a meaning in any of them is
replaced by a sign that looks the same and has none, or is parted from its neighbour by a space of no width.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum

from reconciler.errors import one_line
from reconciler.text.markdown import escaped
from reconciler.text.references import GAP, guarded
from reconciler.text.wording import sanitize

_LOOKALIKES = str.maketrans(
    {
        "*": "\N{ASTERISK OPERATOR}",
        "`": "\N{MODIFIER LETTER GRAVE ACCENT}",
        "~": "\N{TILDE OPERATOR}",
        "|": "\N{DIVIDES}",
        "\\": "\N{SET MINUS}",
        "<": "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}",
        ">": "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}",
        "&": "\N{FULLWIDTH AMPERSAND}",
    }
)
"""Marks of emphasis, code, quotes, tags and entities, for which a neighbour of no width is not enough."""
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""Underscores, but not between letters, where none begins emphasis: names have them."""
_MARK = re.compile(
    r"[@\uff20\[\]{#\uff03$!]"  # mentions, links and pictures, macros, channels and headings, formulas
    r"|(?<![0-9]):(?=\S)|:(?=[^\s0-9])"  # schemes and emoji; the time of day stays
    r"|(?<=[^\W_])[.\u3002\uff0e\uff61](?=[^\W\d_])"  # names of hosts, which many services make links of
    r"|(?<!\S)/(?=\S)"  # commands of bots
    r"|(?<=-)-|(?<==)="  # lines under headings, rules
)
"""The wide @ and # are twitter-text's (regexp/atSigns, regexp/hashSigns), the other full stops those of UTS #46."""
_LINE_START = re.compile(r"(?:[-+=#/]|[0-9]{1,9}[.)])")
"""Lists, and what else has a meaning at the start of a line."""
_CODE, _CODE_LOOKALIKE = "`", f"\N{MODIFIER LETTER GRAVE ACCENT}{GAP}"


class TextTarget(StrEnum):
    """Where a text is shown."""

    LINE = "line"
    """Kubernetes Events: one line without control characters."""
    TERMINAL = "terminal"
    """Lines of a terminal or a CI job: orders to either, turned reading directions and what stays unseen are shown."""
    LOG = "log"
    """A line of a log, or a value in it."""
    METRIC_LABEL = "metric label"
    """The value of a label, before the exposition format quotes it."""
    COMMIT = "commit"
    """A whole message of a commit, whose lines, trailers and own words stay; `read_commit_text` takes it back."""
    COMMIT_STATUS = "commit status"
    """The description of a commit status: one line."""
    TITLE = "title"
    """The title of a pull request, which hosts make the subject of a squash of: one line."""
    CHAT = "chat"
    """All that Apprise sends to: chats, mail, pagers."""
    MARKDOWN = "markdown"
    """Comments and bodies of pull requests, and summaries of CI."""
    JSON = "json"
    """A value of a document, which whoever writes the document quotes."""


def escape(text: str, target: TextTarget) -> str:
    """Return a text as a target shows it as nothing but text."""
    return _ESCAPES[target](text)


def escaper(target: TextTarget) -> Callable[[str], str]:
    """Return the escape of a target, for those that escape tens of thousands of texts at once."""
    return _ESCAPES[target]


def read_commit_text(text: str) -> str:
    """Return a text as it was before its escape for `TextTarget.COMMIT`; others lose their spaces of no width."""
    return text.replace(_CODE_LOOKALIKE, _CODE).replace(GAP, "")


def _commit(text: str) -> str:
    return guarded(text).replace(_CODE, _CODE_LOOKALIKE)


def _commit_line(text: str) -> str:
    return _commit(sanitize(text))


def _unmarked(text: str) -> str:
    """Return one line without markup of any chat."""
    line = sanitize(text).translate(_LOOKALIKES)
    line = _MARK.sub(rf"\g<0>{GAP}", _EMPHASIS.sub("\N{MODIFIER LETTER LOW MACRON}", line))
    return f"{GAP}{line}" if _LINE_START.match(line) else line


def _markdown(text: str) -> str:
    line = escaped(text)
    return f"{GAP}{line}" if _LINE_START.match(line) else line


_ESCAPES: Mapping[TextTarget, Callable[[str], str]] = {
    TextTarget.LINE: sanitize,
    TextTarget.TERMINAL: lambda text: "\n".join(map(one_line, text.split("\n"))),
    TextTarget.LOG: one_line,
    TextTarget.METRIC_LABEL: one_line,
    TextTarget.COMMIT: _commit,
    TextTarget.COMMIT_STATUS: _commit_line,
    TextTarget.TITLE: _commit_line,
    TextTarget.CHAT: _unmarked,
    TextTarget.MARKDOWN: _markdown,
    TextTarget.JSON: str,
}
