"""What a bootstrap grants beyond an earlier one, whichever form that was read in."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from reconciler.core.engines.grants import grants, widening

LAYOUT = Path(__file__).parents[2] / "repo-layout" / "bootstrap"


def of(name: str, **words: str) -> frozenset[str]:
    text = (LAYOUT / name).read_text()
    for old, new in words.items():
        assert old in text
        text = text.replace(old, new)
    return grants(yaml.safe_load_all(text))


@pytest.mark.parametrize(("name", "at_least"), [("argocd.yaml", 60), ("flux.yaml", 30)])
def test_objects_grant_the_same_as_kubectl_prints_them(name: str, at_least: int) -> None:
    documents = [*yaml.safe_load_all((LAYOUT / name).read_text())]
    assert len(of(name)) > at_least
    assert grants([{"apiVersion": "v1", "kind": "List", "items": documents}]) == of(name)
    assert widening(of(name), of(name), "it") == "# It grants what it granted, no more and no less.\n"


@pytest.mark.parametrize(
    ("name", "before", "after", "told"),
    [
        ("argocd.yaml", "kind: ConfigMap\n", "kind: Tool\n", "kind /Tool"),
        ("argocd.yaml", "namespace: vllm-stack", "namespace: '*'", "destination worker-1, namespace *"),
        ("argocd.yaml", "https://vllm-project.github.io", "https://evil.example", "source https://evil.example/"),
        ("flux.yaml", "  - configmaps\n", "  - clusterroles\n", "overspill-root: get, list, watch, create, update, "),
        ("flux.yaml", "  name: overspill-usual\n", "  name: cluster-admin\n", "ClusterRole cluster-admin in namespace"),
        ("flux.yaml", "enforce: baseline", "enforce: privileged", "namespace vllm-demo: pods of level privileged"),
    ],
)
def test_each_thing_that_widens_is_told(name: str, before: str, after: str, told: str) -> None:
    text = (LAYOUT / name).read_text()
    assert before in text
    told_lines = widening(of(name), grants(yaml.safe_load_all(text.replace(before, after))), "old.yaml").splitlines()
    assert told_lines[0] == "# Granted beyond old.yaml:"
    assert any(line.startswith("#   + ") and told in line for line in told_lines)


def test_a_project_that_withheld_kinds_granted_all_others() -> None:
    project = {"kind": "AppProject", "spec": {"namespaceResourceBlacklist": [{"group": "rbac.x", "kind": "*"}]}}
    listed = [{"group": group, "kind": "A"} for group in ("", "apps", "rbac.x")]
    after = grants([{"kind": "AppProject", "spec": {"namespaceResourceWhitelist": listed}}])
    assert widening(grants([project]), after, "it").splitlines() == [
        "# Granted beyond it:",
        "#   + kind rbac.x/A",
        "# Granted by it and no longer:",
        "#   - every kind within namespaces but rbac.x/*",
    ]


@pytest.mark.parametrize("document", [None, [], "a", {}, {"kind": "Role", "rules": 1}, {"kind": "AppProject"}])
def test_what_is_no_object_grants_nothing(document: object) -> None:
    assert grants([document]) == frozenset()
