"""The marks by which git hosts, trackers and CI read a text as a reference or an order: one list for all targets.

It holds what GitHub, GitLab, Gitea, Forgejo, Bitbucket, Azure DevOps, Jira and YouTrack document of commits, titles and
comments. A word such as ``closes`` needs no entry: it closes nothing that no mark refers to.
"""

from __future__ import annotations

import re

GAP = "\u200b"
"""A space of no width, as chats themselves document it against mentions."""
_REFERENCE = re.compile(
    r"(?-i:(?=[@#!$&~%*\[{/:A-Zgmswx\u017f]))(?:"  # where marks begin: a fifth of the time of trying each of them
    r"(?<![A-Za-z0-9])@|@(?=[\w-]+(?:\.[\w-]+)*\.[0-9_-]*[a-z])"  # people, teams, mail; versions and digests stay
    r"|@(?=[0-9a-f]{7,64}\b)"  # commits of other repositories
    r"|#(?=\w)"  # issues, Jira's smart commits
    r"|[!$&](?=\d)|[~%](?=[\w\"{])|\*(?=\*|iteration:)"  # GitLab's other references, Azure's ***NO_CI***
    r"|\[(?=[\[^]|[^\W\d])"  # [skip ci] in all its forms, [issue:3], short links, footnotes
    r"|[\[{](?=[+-])"  # GitLab's inline diffs, which it looks for in rendered text
    r"|(?<=\w)/(?=[\w.-]{1,255}>(?!\w))"  # GitLab's projects
    r"|\bskip-(?=checks?\b)"
    r"|:(?=//)|\bwww(?=\.)|\b(?:mailto|xmpp):(?=\S)"
    r"|\bg[hl]-(?=\d)"
    r"|(?-i:(?<![A-Za-z0-9])[A-Z][A-Z0-9_]{0,63}-(?=\d++(?![A-Za-z0-9])))"  # Jira, YouTrack; 80GB stays
    r"|(?<!\S)/(?=[a-z])"  # quick actions and commands of bots, wherever a line is wrapped
    r"|:(?=[0-9]*+[a-z_+-][a-z0-9_+-]*+:)|(?<![0-9]):(?=[0-9]++:))",  # emoji; the time of day stays
    re.IGNORECASE,
)


def guarded(text: str) -> str:
    """Return a text with a space of no width after each mark; none of its own are left."""
    return _REFERENCE.sub(rf"\g<0>{GAP}", text.replace(GAP, ""))
