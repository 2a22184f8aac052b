"""README.md as the long description of a package: there, links to files of the repository lead nowhere."""

import re

_FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)
_RELATIVE = r"(?![a-z][a-z0-9+.-]*:|//)"
_IMAGE = re.compile(rf"!\[([^\[\]]*)\]\({_RELATIVE}([^()\s]+)\)")
_LINK = re.compile(rf"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\({_RELATIVE}([^()\s]+)\)")
_DEFINITION = re.compile(rf"^(\[[^\[\]]+\]:\s+){_RELATIVE}(\S+)$", re.MULTILINE)
_ATTRIBUTE = re.compile(rf'\b(href|src|srcset)="{_RELATIVE}([^"]+)"')
_PICTURE = re.compile(
    rf'<picture>(?:(?!</picture>).)*="{_RELATIVE}.*?</picture>|<img\b[^>]*\bsrc="{_RELATIVE}[^>]*>', re.DOTALL
)
_ANCHOR = re.compile(rf'<a\b[^>]*\bhref="{_RELATIVE}[^>]*>(.*?)</a>', re.DOTALL)


def with_absolute_links(text: str, home: str) -> str:
    """Return Markdown whose relative links lead to `home`, the web page of the repository at its git host.

    Files are at ``blob/HEAD``, images at ``raw/HEAD``, as GitHub, GitLab and Gitea have them. Without a home, links are
    left as their words, and pictures out. Blocks of code stay as they are.
    """
    parts = _FENCE.split(text)
    parts[::2] = [_converted(part, home) for part in parts[::2]]
    return "".join(parts)


def _converted(text: str, home: str) -> str:
    if not home:
        text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", text))
        return _ANCHOR.sub(r"\1", _PICTURE.sub("", _DEFINITION.sub(r"\1#", text)))
    text = _IMAGE.sub(lambda image: f"![{image[1]}]({_address(home, 'raw', image[2])})", text)
    text = _LINK.sub(lambda link: f"[{link[1]}]({_address(home, 'blob', link[2])})", text)
    text = _DEFINITION.sub(lambda line: f"{line[1]}{_address(home, 'blob', line[2])}", text)
    return _ATTRIBUTE.sub(
        lambda tag: f'{tag[1]}="{_address(home, "blob" if tag[1] == "href" else "raw", tag[2])}"', text
    )


def _address(home: str, view: str, target: str) -> str:
    home = home.rstrip("/")
    return f"{home}{target}" if target.startswith("#") else f"{home}/{view}/HEAD/{target.removeprefix('./')}"
