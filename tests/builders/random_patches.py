"""Pods and strategic merge patches made by chance, from a seed: of every list and object that a Pod has.

Names come from few letters, so that what a patch says is often there already. Most patches can be applied.
"""

from __future__ import annotations

from random import Random
from typing import Any

from reconciler.core.pods.strategic_merge import FLAT, TYPES, PodField

Json = Any
LETTERS = "abcde"
LEFT_OUT = frozenset(
    {"evictionResponders", "fileKeyRef", "managedFields", "podCertificate", "restartPolicyRules", "schedulingGroup"}
)
"""Fields that kubectl does not print, or that Kubernetes 1.32 does not have, so that any later kubectl can be asked."""


def pair(seed: int) -> tuple[dict[str, Json], dict[str, Json]]:
    """Make a pod and a patch of it."""
    rng = Random(seed)
    made = {name: _object(rng, field.of, 0) for name, field in TYPES["Pod"].items()}
    pod = {"apiVersion": "v1", "kind": "Pod", **made}
    pod["metadata"]["name"] = "sample"
    patch = {name: _patch(rng, field.of, 0) for name, field in TYPES["Pod"].items() if rng.random() < 0.8}
    return pod, patch


def _fields(rng: Random, kind: str, depth: int) -> list[tuple[str, PodField]]:
    found = [(name, field) for name, field in TYPES[kind].items() if name not in LEFT_OUT]
    return rng.sample(found, min(len(found), rng.randint(0, 4 if depth else 8)))


def _object(rng: Random, kind: str, depth: int) -> dict[str, Json]:
    """Make an object as it may stand in a cluster."""
    made: dict[str, Json] = {letter: rng.choice(["x", "y", "1"]) for letter in LETTERS if rng.random() < 0.3}
    for name, field in _fields(rng, kind, depth):
        made[name] = _list(rng, field, depth) if field.many else _object(rng, field.of, depth + 1)
    return made


def _list(rng: Random, field: PodField, depth: int) -> list[Json]:
    keys = rng.sample(LETTERS, rng.randint(0, 4))
    if not field.key:
        return keys if field.of == FLAT else [_object(rng, field.of, depth + 1) for _ in keys]
    return [{field.key: _key(field, key), **_object(rng, field.of, depth + 1)} for key in keys]


def _key(field: PodField, letter: str) -> Json:
    return 8000 + LETTERS.index(letter) if field.key == "containerPort" else letter


def _patch(rng: Random, kind: str, depth: int) -> dict[str, Json]:
    """Make what is said of an object in a patch."""
    made: dict[str, Json] = {letter: rng.choice(["z", "2", None]) for letter in LETTERS if rng.random() < 0.2}
    for name, field in _fields(rng, kind, depth):
        chance = rng.random()
        if chance < 0.05:
            made[name] = None
        elif chance < 0.07:
            made[name] = rng.choice(["text", 3, [], {}])
        elif field.many:
            made |= _list_patch(rng, name, field, depth)
        else:
            made[name] = _patch(rng, field.of, depth + 1)
    chance = rng.random()
    if depth and chance < 0.06:
        made["$patch"] = rng.choice(["replace", "replace", "delete", "delete", "merge"])
    elif depth and chance < 0.12:
        stays = [name.rpartition("/")[2] for name in made] + rng.sample(LETTERS, 2)
        made["$retainKeys"] = stays if rng.random() < 0.9 else stays[1:]
    return made


def _list_patch(rng: Random, name: str, field: PodField, depth: int) -> dict[str, Json]:
    """Make what is said of a list: its items, or what goes, and perhaps an order."""
    keys = rng.sample(LETTERS, rng.randint(0, 3))
    if not field.key and not field.merges:
        return {name: _list(rng, field, depth)}
    if not field.key:
        said = rng.choice([name, f"$deleteFromPrimitiveList/{name}"])
        return {said: keys, **_order(rng, name, keys if said == name else [], lambda key: key)}
    items = [_item(rng, field, key, depth) for key in keys]
    left = [key for key, item in zip(keys, items, strict=True) if "$patch" not in item]
    return {name: items, **_order(rng, name, left, lambda key: {field.key: _key(field, key)})}


def _item(rng: Random, field: PodField, key: str, depth: int) -> dict[str, Json]:
    item = {field.key: _key(field, key)}
    chance = rng.random()
    if chance < 0.15:
        return {**item, "$patch": "delete"}
    if chance < 0.2:
        return {"$patch": rng.choice(["replace", "replace", "merge"]), **item}
    if chance < 0.22:
        return {"x": "no key"}
    said = {name: value for name, value in _patch(rng, field.of, depth + 1).items() if name != "$patch"}
    if "$retainKeys" in said:
        said["$retainKeys"] = [*said["$retainKeys"], field.key]
    return {**item, **said}


def _order(rng: Random, name: str, keys: list[str], item: Any) -> dict[str, Json]:
    """Give a list an order in which the items of the patch stand as they do in it; sometimes not quite."""
    chance = rng.random()
    if not keys or chance > 0.35:
        return {}
    if chance < 0.03:
        return {f"$setElementOrder/{name}": []}
    ordered = [*keys]
    for letter in LETTERS:
        if letter not in ordered and rng.random() < 0.6:
            ordered.insert(rng.randint(0, len(ordered)), letter)
    if chance < 0.06:
        rng.shuffle(ordered)
    return {f"$setElementOrder/{name}": [item(key) for key in ordered]}
