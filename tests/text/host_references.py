"""What git hosts, trackers and CI read in a text as a reference or an order, as their own documents describe it.

It shares nothing with the escapes of the product. Sources: docs.github.com (autolinked references, skipping workflow
runs), docs.gitlab.com (references in Markdown, skipped pipelines), modules/references/references.go of Gitea,
learn.microsoft.com on skipping CI in Azure DevOps, and support.atlassian.com on smart commits.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

REFERENCES = {
    "people of GitHub, GitLab, Gitea and Bitbucket": r"(?<![A-Za-z0-9])@[\w\"{]",
    "mail": r"[\w.]+@(?:[\w-]+\.)+[0-9_-]*[a-z]|mailto:\w|xmpp:\w",
    "issues of GitHub, GitLab, Gitea and Azure": r"#\w|(?i:\bg[hl]-\d)|!\d|[\w-]+/[\w-]+[#!]\d",
    "commits of other repositories": r"[\w-]/[\w-]+@[0-9a-f]{7}",
    "epics, snippets, milestones, labels and iterations of GitLab": r"[&$]\d|[%~][\w\"{]|\*iteration:|\[[a-z_]+:",
    "projects of GitLab": r"[\w-]/[\w.-]+>(?!\w)",
    "inline diffs and footnotes of GitLab": r"[{\[][+-]|\[\^",
    "issues of Jira, YouTrack and Gitea's trackers": r"(?<![A-Za-z0-9])[A-Z][A-Z0-9_]*-\d+(?![A-Za-z0-9])",
    "addresses": r"[A-Za-z]://|(?i:www\.\w)",
    "short links of Gitea": r"\[\[",
    "emoji": r"(?<![0-9]):[a-z0-9_+-]+:|:[0-9]*[a-z_+-][a-z0-9_+-]*:",
    "quick actions and commands of bots": r"(?m)(?:^|(?<=\s))/[a-z]",
    "orders to skip CI": (
        r"(?i)\[(?:skip|no)[ _-](?:ci|cd|actions|azp|azurepipelines|netlify|travis)\]"
        r"|\[(?:ci|actions|azp|vercel|appveyor|cf-pages)[ _-]skip\]|\*\*\*NO_CI\*\*\*|skip-checks?\s*:"
    ),
}
CODE = r"`"
FORMULA = r"\$(?=\S)[^$\n]*[^\s$]\$(?![0-9])|\$\$"
"""As GitLab, GitHub and Gitea look for it in the source of Markdown."""


def references(text: str) -> set[str]:
    """Return what is referred to or ordered in a text that is read as it is: a commit, a title, a status."""
    return {name for name, mark in REFERENCES.items() if re.search(mark, text)}


def rendered_references(source: str) -> set[str]:
    """Return what is referred to or ordered in Markdown: in the text that a renderer makes of it, where code is none.

    The source has what hosts look for before they render it, and what a squash makes a commit of.
    """
    blocks = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(source)
    texts = [
        "".join(child.content if child.type in {"text", "text_special"} else "\n" for child in block.children or ())
        for block in blocks
        if block.type == "inline"
    ]
    found = set().union(*map(references, texts), references(re.sub(r"`+[^`\n]*`+", "", source)))
    return found | ({"a formula"} if re.search(FORMULA, source) else set())
