"""What a file of the fleet repository holds that holds no object of ours, in a few words."""

from __future__ import annotations

import re

from reconciler.text.findings import shortened
from reconciler.text.wording import join_names

_SHOWN = 4096
"""Bytes at the beginning of a file by which it is recognised."""
_KIND = re.compile(rb"""^["']?kind["']?[ \t]*:[ \t]*["']?([A-Za-z][A-Za-z0-9]{0,62})\b""", re.MULTILINE)
_MOST_KINDS = 3
_BEGINNINGS = (
    (b"version https://git-lfs.github.com/spec/", "is a Git LFS pointer"),
    (b"# git-annex", "is a pointer of git-annex"),
    (b"$ANSIBLE_VAULT", "is encrypted by ansible-vault"),
    (b"\0GITCRYPT", "is encrypted by git-crypt"),
    (b"age-encryption.org/", "is encrypted by age"),
    (b"-----BEGIN AGE ENCRYPTED FILE", "is encrypted by age"),
    (b"-----BEGIN PGP MESSAGE", "is encrypted by PGP"),
    (b"\xff\xfe", "is UTF-16, not UTF-8"),
    (b"\xfe\xff", "is UTF-16, not UTF-8"),
)


def describe_foreign(data: bytes) -> str:
    """Say what bytes are, as a predicate: ``is a Git LFS pointer``."""
    begin = data[:_SHOWN]
    for beginning, words in _BEGINNINGS:
        if begin.startswith(beginning):
            return words
    if b"\0" in begin:
        return "is binary" if begin.strip(b"\0") else "is nothing but null bytes"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    if begin.lstrip().startswith(b"<"):
        return "is a page of HTML or XML"
    if b"sops" in data and b"ENC[" in data:
        return "is encrypted by SOPS"
    kinds = dict.fromkeys(match.decode() for match in _KIND.findall(begin))
    if kinds:
        return f"holds {join_names([shortened(kind) for kind in kinds][:_MOST_KINDS])}"
    return "holds nothing that has a kind of ours"
