"""Kubeconfigs are merged as kubectl merges them, and a login that cannot work says what it lacks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.adapters.kube.kubeconfig import BrokenKubeconfig, read_kubeconfig
from reconciler.adapters.kube.targets import Contexts
from reconciler.adapters.kubeconfig_files import kubeconfig_files

SERVER = "https://k8s.example.com"


def written(path: Path, *, current: str = "", **contexts: dict[str, Any]) -> Path:
    """Write a kubeconfig with a cluster and a user for each context, by its name."""
    path.parent.mkdir(exist_ok=True)
    entries = {
        "clusters": [{"name": name, "cluster": {"server": SERVER, **more}} for name, more in contexts.items()],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in contexts],
        "users": [{"name": name, "user": {"token": str(path)}} for name in contexts],
    }
    path.write_text(yaml.safe_dump({**entries, "current-context": current}))
    return path


def several(*paths: Path) -> Path:
    return Path(os.pathsep.join(map(str, paths)))


def test_entries_of_the_earlier_file_count(tmp_path: Path) -> None:
    first = written(tmp_path / "first", a={})
    second = written(tmp_path / "second", current="b", a={}, b={})
    third = written(tmp_path / "third", current="a", c={})
    (tmp_path / "empty").touch()
    config = read_kubeconfig(several(tmp_path / "nowhere", tmp_path / "empty", first, second, third))
    assert list(config.contexts) == ["a", "b", "c"]
    assert config.users["a"]["token"] == str(first)
    assert config.current == "b"


def test_files_named_in_a_kubeconfig_lie_beside_it(tmp_path: Path) -> None:
    first = written(tmp_path / "one" / "config", a={})
    second = written(tmp_path / "two" / "config", b={"certificate-authority": "ca.crt"})
    authority = second.parent / "ca.crt"
    authority.touch()
    login = read_kubeconfig(several(first, second)).login("b")
    assert login.value["clusters"][0]["cluster"]["certificate-authority"] == str(authority)


def test_a_file_whose_name_has_a_colon_is_one_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a:b", a={})
    assert kubeconfig_files(path) == (path,)


def test_contexts_of_all_files_are_watched_and_one_that_is_emptied_keeps_its_own(tmp_path: Path) -> None:
    first, second = written(tmp_path / "first", a={}), written(tmp_path / "second", b={})
    empty = tmp_path / "empty"
    empty.touch()
    contexts = Contexts(several(first, empty, second))
    assert contexts.read() == {"a", "b"}
    second.write_text("")
    assert contexts.read() == {"a", "b"}
    assert contexts.unreadable
    written(second, c={})
    empty.unlink()
    assert contexts.read() == {"a", "c"}
    assert not contexts.unreadable


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ({"contexts": []}, "the kubeconfig has no context a (it has none)"),
        ({"clusters": []}, "context a of the kubeconfig names the cluster 'a', which it lacks"),
        ({"users": []}, "context a of the kubeconfig names the user 'a', which it lacks"),
        (
            {"clusters": [{"name": "a", "cluster": {"server": "k8s.example.com"}}]},
            "cluster a of the kubeconfig has no server with https:// and a host",
        ),
        (
            {"clusters": [{"name": "a", "cluster": {"server": SERVER, "certificate-authority": "/nowhere/ca"}}]},
            "cluster a of the kubeconfig: the file of its certificate-authority is not there: /nowhere/ca",
        ),
        (
            {"users": [{"name": "a", "user": {"client-key-data": "?"}}]},
            "user a of the kubeconfig: its client-key-data is not base64",
        ),
        ({"users": [{"name": "a", "user": "me"}]}, "is not a kubeconfig: one of its users has no name, or no user"),
        ({"users": "a"}, "is not a kubeconfig: its users are no list"),
    ],
)
def test_login_that_lacks_something_says_what(tmp_path: Path, edit: dict[str, Any], why: str) -> None:
    path = written(tmp_path / "config", a={})
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **edit}))
    with pytest.raises(BrokenKubeconfig) as refused:
        read_kubeconfig(path).login("a")
    assert str(refused.value) == why


def test_context_without_a_user_is_a_login_of_nobody(tmp_path: Path) -> None:
    path = written(tmp_path / "config", a={})
    path.write_text(
        yaml.safe_dump(
            {**yaml.safe_load(path.read_text()), "contexts": [{"name": "a", "context": {"cluster": "a"}}], "users": []}
        )
    )
    assert read_kubeconfig(path).login("a").value["users"][0]["user"] == {}
