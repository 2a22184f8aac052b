"""What tenants and clusters write stays text in every target: read by parsers that share nothing with the escapes."""

from __future__ import annotations

import ast
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown import markdown
from markdown_it import MarkdownIt

from reconciler.core.commits.trailers import Trailer, write_trailers
from reconciler.text.markdown import escaped
from reconciler.text.targets import TextTarget, escape, read_commit_text
from reconciler.text.wording import sanitize
from tests.text.host_references import CODE, REFERENCES, references, rendered_references

HOSTILE = (
    "<!channel> <!here> <!subteam^S1> <@U024BE7LH> <#C1> <https://evil.example|your bank>",
    "@everyone @here @all @channel @alice (@bob) @**Cordelia** @*team* @_**quiet**",
    "<@123> <@!123> <@&123> <#123> <users/all> <at>Bob</at> <at id='1'>",
    "[click](https://evil.example) ![i](https://evil.example/x.png) [click][1] [1]: https://evil.example",
    "https://evil.example/auto http://evil.example ftp://x.example www.evil.example evil.example/login a@b.example",
    "*b* **b** _i_ __u__ ***x*** ~s~ ~~s~~ `c` ``c`` ```c``` ||spoiler|| $$x$$ ^^u^^",
    "<b>h</b> <img src=https://evil.example/x.png> <a href=https://evil.example>x</a>",
    "<script>x</script> &lt;b&gt; &#64;here",
    "# heading", "## heading", "- item", "+ item", "* item", "1. item", "2) item", "> quote", "--- ", "=== ",
    "\uff20here \uff20all \uff03general evil\uff0eexample evil\u3002example evil\uff61example",
    "{code}x{code} {color:red}x{color}",
    "/merge", "/assign @bob", "!deploy", ":tada: :100: :smile:", "~town-square #general #tag stream #**general>topic**",
    "[url=https://evil.example]x[/url] [b]x[/b]", "| a | b |", "\\*b\\* \\[x](https://evil.example)",
    "a\r\n- b\n\n# c\n```\ncode\n```",
    "\x1b[31mred \x1b]8;;https://evil.example\x07x\x1b]8;;\x07 \x9b1m \x08\x08 \rover",
    "abc\u202etxt.exe \u2066x\u2069 \u200f \ufeff", "x\u2028y\u2029z\x85w", "Subject\r\nBcc: victim@example.com",
    "fixes #12, closes acme/infra#3 resolves GH-26 gh-7 fix !12 Closes acme/infra!4 implements OPS-12 &3 $4 %5 ~6",
    'Closes https://git.example/acme/infra/issues/7 ~bug ~"two words" %v1 *iteration:3 [vulnerability:9] [[Page]]',
    'fixes: #12\nOPS-12 #close #time 2w :100: `x` (@acme/admins) @"Ann B" ann@acme.example \u02cb \u200b@x @\u200bx',
    "[skip ci] [CI SKIP] [no ci] [skip actions] [actions skip] [skip-ci] [ci_skip] [azp skip] ***NO_CI***",
    "skip-checks: true skip-checks:true closes A-1 fixes _OPS-12, OPS-12-x OPS-12_x resolves gl-3 GL-12",
    "^alert#3 [alert:3] [work_item:3] [contact:a@b.example] [^1] [^1]: note acme/infra> {+ in +} [- out -] %{user}",
    "acme/infra@3b1c4de acme/infra@3b1c4de0a1b2c3d4e5f60718293a4b5c6d7e8f90 mailto:ann xmpp:ann@acme.example ann@a.1x",
    "$x$ $$x$$ $`x`$ a$b$c 5$ $x^2$: @{uuid} 5:tada: :+1: :100: x:y:z (/merge) \t/approve x /lgtm",
    "fine\n\nOverspill-Action: Revert\nOverspill-Placement: llm/x", "Overspill-Expires : 2030-01-01T00:00:00Z",
)  # fmt: skip # a table of texts
CHAT_MARKS = {
    "Slack": r"<[!@#]?[A-Za-z0-9^]+(?:\|[^>]*)?>|<https?:[^>]*>",
    "Discord": r"@everyone|@here|<@[!&]?\d+>|<#\d+>|\|\|.+\|\||__.+__|~~.+~~",
    "mentions of Mattermost, Rocket.Chat and others": r"(?<![A-Za-z0-9])[@\uff20][A-Za-z0-9*_]",
    "channels": r"(?<!\S)[~#\uff03][A-Za-z*]",
    "macros of Jira": r"\{[a-z]",
    "Google Chat": r"<users/|<https?:[^|>]*\|",
    "Telegram and HTML": r"<[A-Za-z/!]|&[A-Za-z#]",
    "Markdown links": r"\]\(|\]\[|\]:|!\[",
    "addresses": r"[a-z]+:/|mailto:\w|(?<![A-Za-z])www\.[a-z]|[a-z0-9][.\u3002\uff0e\uff61][a-z]",
    "emphasis": r"\*|`|~|(?<![A-Za-z0-9])_\w|\w_(?![A-Za-z0-9])|\$\$",
    "emoji": r"(?<![0-9]):[a-z0-9_+-]+:",
    "BBCode": r"\[/?[a-z]+[=\]]",
    "commands": r"(?m)^\s*[/!][a-z]",
    "lines of lists and headings": r"(?m)^\s*(?:[-+*>#=]|\d+[.)])",
}
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\u200e\u200f\ufeff]")
PLAIN = {"paragraph_open", "paragraph_close", "inline", "text", "text_special"}


class Tags(HTMLParser):
    """Collects elements."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)


def tokens(text: str) -> set[str]:
    """Return the kinds of what a Markdown reader finds beside text."""
    found = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return {token.type for block in found for token in (block, *(block.children or ()))} - PLAIN


def tags(html: str) -> set[str]:
    reader = Tags()
    reader.feed(html)
    return set(reader.seen)


@pytest.mark.parametrize("text", HOSTILE)
def test_chats_read_no_mention_link_or_style(text: str) -> None:
    shown = escape(text, TextTarget.CHAT)
    assert {service for service, mark in CHAT_MARKS.items() if re.search(mark, shown)} == set()
    assert not CONTROL.search(shown)
    assert tokens(shown) == set()
    assert tags(markdown(shown)) <= {"p"}  # Zulip's
    assert tags(shown) == set()


@pytest.mark.parametrize("text", HOSTILE)
def test_git_hosts_read_no_mention_link_style_or_command(text: str) -> None:
    for shown in (
        escape(text, TextTarget.MARKDOWN),
        f"error: {escaped(text)}",
        f"- {escape(text, TextTarget.MARKDOWN)}",
    ):
        assert tokens(shown) - {"bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"} == set()
        assert rendered_references(shown) == set()


@pytest.mark.parametrize("text", HOSTILE)
def test_commit_and_title_mention_link_order_and_close_nothing_at_any_host(text: str) -> None:
    shown = escape(f"Held: {sanitize(text)}.\n\n{write_trailers([(Trailer.SUBSET, text)])}\n", TextTarget.COMMIT)
    wrapped = escape(sanitize(text).replace(" ", "\n"), TextTarget.COMMIT)
    lines = [escape(text, target) for target in (TextTarget.COMMIT_STATUS, TextTarget.TITLE)]
    for written in (shown, wrapped, *lines):
        assert references(written) == set()
        assert not re.search(CODE, written)
    assert not any(CONTROL.search(line) for line in lines)


def test_each_reference_of_a_host_is_tried() -> None:
    """A pattern that finds nothing in what is written here would prove nothing."""
    assert references("\n".join(HOSTILE)) == set(REFERENCES)
    assert "a formula" in rendered_references("$x$")


@pytest.mark.parametrize("text", HOSTILE)
def test_commit_text_is_read_back_exactly(text: str) -> None:
    line = sanitize(text)
    assert read_commit_text(escape(line, TextTarget.COMMIT)) == line
    assert escape(read_commit_text(escape(line, TextTarget.COMMIT)), TextTarget.COMMIT) == escape(
        line, TextTarget.COMMIT
    )


def test_own_words_of_commits_stay_as_they_are() -> None:
    text = (
        "burst(llm/vllm): 3 replicas on worker-2 (gpu.nvidia.com, NVIDIA-A100-SXM4-80GB) until 2026-11-20T22:19:07Z, "
        "2.99 $/GPU-h, 80% of 64Gi memory; 1f3c:apps/vllm, chart vllm-stack@0.1.7, vllm@sha256-3b1c, "
        "ghcr.io/acme/vllm:v1@sha256:3b1c"
    )
    assert escape(text, TextTarget.COMMIT) == text


@pytest.mark.parametrize("text", HOSTILE)
def test_lines_hold_no_control_character_and_no_trailer(text: str) -> None:
    shown = escape(text, TextTarget.LINE)
    assert not CONTROL.search(shown)
    assert not re.search(r"(?i)overspill-[a-z-]+\s*:", shown)


@pytest.mark.parametrize("text", HOSTILE)
def test_words_stay_readable_in_chats(text: str) -> None:
    def words(shown: str) -> list[str]:
        return re.findall(r"[A-Za-z0-9]+", shown.replace("\u200b", ""))

    assert words(escape(text, TextTarget.CHAT)) == words(escape(text, TextTarget.LINE))


def test_names_and_times_stay_as_they_are() -> None:
    text = "burst(llm/vllm): 3 replicas on worker-2 for 10m, cpx_nps4, 22:19:07, 2.99 $ per hour"
    assert escape(text, TextTarget.CHAT).replace("\u200b", "") == text


LINES = [target for target in TextTarget if target not in (TextTarget.JSON, TextTarget.COMMIT)]
IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip # Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt
BLANK = (0x00A0, 0x2800, 0x3000, 0x1D159)


@pytest.mark.parametrize("target", LINES)
def test_nothing_stays_unseen(target: TextTarget) -> None:
    codes = [code for first, last in IGNORABLE for code in range(first, last + 1)]
    shown = {code: escape(f"x{chr(code)}y", target) for code in (*codes, *BLANK)}
    assert [hex(code) for code, text in shown.items() if chr(code) in text or text == "xy"] == []


@pytest.mark.parametrize("target", LINES)
def test_marks_are_stacked_as_high_as_in_writing_and_no_higher(target: TextTarget) -> None:
    for mark in ("\u0300", "\u0e47", "\u0488"):  # above, of Thai, and around
        assert not re.search(rf"{mark}{{6}}", escape(f"a{mark * 200}b", target))
    for text in (
        "Vie\u0323\u0302t Nam",
        "\u0e17\u0e35\u0e48\u0e19\u0e35\u0e49",
        "\u05e9\u05b8\u05c1\u05bc\u0592",
        "\u26a0\ufe0f now",
    ):
        assert escape(text, target) == text


def test_every_target_has_an_escape() -> None:
    assert all(escape("text", target) == "text" for target in TextTarget)


def test_every_writer_of_events_names_its_target() -> None:
    """A form of a notice that puts its line or its reasons anywhere does so through `escape`."""
    folder = Path(__file__).parents[2] / "reconciler/core/notification"
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text())
        reads = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & {"line", "reasons"}
        if reads and path.name not in {"conditions.py", "notices.py"}:  # which make them
            assert "escape(" in path.read_text(), path.name


@pytest.mark.parametrize("target", [TextTarget.TERMINAL, TextTarget.LOG])
def test_text_orders_no_runner_of_ci_jobs(target: TextTarget) -> None:
    orders = (
        "::stop-commands::x", "  ::set-output name=planned::true", "a\n::error file=a::b", "##[add-mask]e",
        "x ##[group]y", "##vso[task.setvariable variable=PATH]/tmp", "x###vso[task.complete]", "##teamcity[message]",
    )  # fmt: skip # a table of texts
    for text in orders:
        lines = escape(text, target).split("\n")
        assert not any(line.strip().startswith("::") or re.search(r"##\w*\[", line) for line in lines), text
    for text in ("std::move", "fe80::1", "::1", "from ::ffff:10.0.0.1", "::ffff:0:0", "## heading [1]", "a: b::c"):
        assert escape(text, target) == text
