"""Inputs near valid ones: documents whose nodes are changed, bytes that are changed, and expressions put together."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 3 * 10**11, 9 * 10**13, 2**63 - 1, 2**63, 2**64,
    -(2**63), 10**40, 0.5, 1e308, -0.0, "", " ", "0", "-1", "1e999",
    "1Ei", "1n", "9" * 400, "0.1", "1h", "-5m", "99999999h", "0s", "2026-11-20T10:00:00Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", "2026-02-30T00:00:00Z", "2026-11-20T10:00:00+23:59", "{{ 1e999 }}", "{{ replicas }}",
    "{{ [1]|sort(reverse=true, reverse=true) }}", "{% for a in range(9) %}{{ a }}{% endfor %}", "<x", "<text>", "[key]",
    "..", "a/b", "a" * 64, "a" * 300, "\u202eevil", "\ud800", "\0", "\n", "é", "*", "@daily", "0 0 31 2 *", "10%",
    "150%", "-1%", "True", "null", "~", "<<", "=", "worker-1", "worker-2", "llm", "vllm", "apps/v1", "v1", "Deployment",
    "StatefulSet", "Job", "[", "(", "(a+)+$", "\\", "%", "${x}", "$(x)", [], {}, [None], [[]], {"": ""}, [{}], [0],
    {"a": {"b": []}}, ["a", "a"], [1, "1"],
)  # fmt: skip # a list of values, filled line by line
"""Values that have broken readers before, of any."""

_TOKENS = (
    b"{", b"}", b"[", b"]", b": ", b"- ", b"\n", b"\r\n", b"\t", b"&a ", b"*a", b"<<: ", b"!!int ", b"!!binary ",
    b"|\n",
    b"---\n", b"...\n", b"? ", b"#", b'"', b"'", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"%YAML 1.1\n",
    b"{{", b"}}", b"{%", b"%}", b"1e999", b"0x1", b"0b1", b"1_0", b".inf", b".nan", b"2026-11-20", b"~", b"null",
    b"yes",
    b"\\ud800", b"apiVersion: overspill.dev/v1alpha1\n", b"kind: Cluster\n", b'"<x": 1\n',
)  # fmt: skip # a list of words, filled line by line


@dataclass(frozen=True)  # no slots, for what is worked out once
class Corpus:
    """Valid documents to begin with."""

    files: Sequence[bytes]

    @classmethod
    def below(cls, *folders: str) -> Corpus:
        """Read every YAML and JSON file below some folders of the repository."""
        paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))]
        return cls([path.read_bytes() for path in paths if path.suffix in (".yaml", ".yml", ".json")])

    @cached_property
    def documents(self) -> list[Any]:
        """Every document of every file."""
        documents: list[Any] = []
        for data in self.files:
            try:
                documents += [
                    document for document in yaml.load_all(data, yaml.CSafeLoader) if isinstance(document, dict)
                ]
            except (yaml.YAMLError, ValueError):
                continue
        return documents

    @cached_property
    def nodes(self) -> list[Any]:
        """Parts of the documents, to be put elsewhere."""
        return [node for document in self.documents for _, _, node in walk(document)]


FLEETS = Corpus.below("repo-layout", "tests/golden", "tests/builders/egs_sample_files")
"""Files of fleet repositories."""


def walk(value: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield every node below a value with its owner and its key there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        yield value, key, item
        yield from walk(item)


def changed_document(random: Random, corpus: Corpus, document: Any) -> Any:
    """Return a copy of a document with a few of its nodes changed."""
    document = copy.deepcopy(document)
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        nodes = list(walk(document))
        if not nodes:
            return document
        owner, key, node = random.choice(nodes)
        match random.randrange(9):
            case 8:
                # What reads a mapping or a list meets something else.
                owner, key, _ = random.choice([node for node in nodes if isinstance(node[2], dict | list)] or nodes)
                owner[key] = copy.deepcopy(random.choice(ODD))
            case 0 | 1 | 2:
                owner[key] = copy.deepcopy(random.choice(ODD))
            case 3:
                owner[key] = copy.deepcopy(random.choice(corpus.nodes))
            case 4:
                del owner[key]
            case 5 if isinstance(owner, dict):
                owner[str(random.choice(ODD))] = copy.deepcopy(random.choice(ODD))
            case 6 if isinstance(owner, list):
                owner.insert(random.randrange(len(owner) + 1), copy.deepcopy(node))
            case _ if isinstance(node, str) and node:
                at = random.randrange(len(node))
                owner[key] = node[:at] + str(random.choice(ODD)) + node[at + random.randrange(2) :]
            case _:
                owner[key] = [node] if random.random() < 0.5 else {"a": node}
    return document


def changed_bytes(random: Random, corpus: Corpus, data: bytes) -> bytes:
    """Return a file with a few of its bytes changed."""
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(data) + 1)
        match random.randrange(5):
            case 0:
                data = data[:at] + random.choice(_TOKENS) + data[at:]
            case 1:
                data = data[:at] + data[at + random.randrange(1, 9) :]
            case 2:
                data = data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
            case 3:
                other = random.choice(corpus.files)
                data = data[:at] + other[random.randrange(len(other) + 1) :]
            case _:
                lines = data.split(b"\n")
                lines.insert(random.randrange(len(lines)), random.choice(lines))
                data = b"\n".join(lines)
    return data


def encoded(document: Any) -> bytes:
    """Write a document as JSON, which is YAML as well; what UTF-8 cannot hold is escaped."""
    return json.dumps(document, default=str).encode()


def changed_file(random: Random, corpus: Corpus) -> bytes:
    """Return a file near a valid one."""
    if random.random() < 0.35:
        return changed_bytes(random, corpus, random.choice(corpus.files))
    documents = [
        changed_document(random, corpus, random.choice(corpus.documents)) for _ in range(random.choice((1, 1, 2)))
    ]
    return b"\n---\n".join(map(encoded, documents))


_ATOMS = (
    "replicas", "cluster", "cluster.name", "cluster.labels", "placement.expiresAt", "workspace.name", "template.name",
    "0",
    "1", "-1", "1.5", "1e999", "1e308", "'a'", "''", "none", "true", "[1, 2]", "[]", "{}", "{'a': 1}", "loop.index",
    "x",
    "range(3)", "(1, 2)", "'a\\nb'", "9223372036854775807", "cluster.labels.a", "cluster.labels['zone']",
)  # fmt: skip # a list of words, filled line by line
_OPERATORS = ("+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">=", "in", "not in", "and", "or", "is", "|", "**")
_ARGUMENTS = ("", "1", "'a'", "reverse=true", "reverse=true, reverse=true", "default='x', default='y'", "1e999", "2, 3")


def expression(random: Random, filters: Sequence[str], tests: Sequence[str], methods: Sequence[str]) -> str:
    """Return a text with an expression that may be anything."""

    def value(depth: int) -> str:
        if depth > 4 or random.random() < 0.25:
            return random.choice(_ATOMS)
        match random.randrange(9):
            case 0:
                return f"{value(depth + 1)} {random.choice(_OPERATORS)} {value(depth + 1)}"
            case 1:
                return f"{value(depth + 1)}|{random.choice(filters)}"
            case 2:
                return f"{value(depth + 1)}|{random.choice(filters)}({random.choice(_ARGUMENTS)})"
            case 3:
                return f"({value(depth + 1)} is {random.choice(tests)})"
            case 4:
                return f"({value(depth + 1)}).{random.choice(methods)}({random.choice(_ARGUMENTS)})"
            case 5:
                return f"({value(depth + 1)} if {value(depth + 1)} else {value(depth + 1)})"
            case 6:
                return f"({value(depth + 1)})[{value(depth + 1)}]"
            case 7:
                return f"[{value(depth + 1)}, {value(depth + 1)}]"
            case _:
                return f"range({random.choice(_ARGUMENTS)})"

    match random.randrange(4):
        case 0:
            return f"{{% for x in {value(1)} %}}{{{{ {value(2)} }}}}{{% endfor %}}"
        case 1:
            return f"{{% if {value(1)} %}}{{{{ {value(2)} }}}}{{% endif %}}"
        case 2:
            return f"a {{{{ {value(0)} }}}} b"
        case _:
            return f"{{{{ {value(0)} }}}}"
