"""The manifest that runs the daemon in a cluster agrees with the image, the settings and the daemon's addresses."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from reconciler.environment import PREFIX, VARIABLES
from reconciler.model.policy import Flux

CHECKOUT = Path(__file__).parents[2]
BOOTSTRAP = CHECKOUT / "repo-layout" / "bootstrap"
DEPLOYMENT, SERVICE, NETWORK = yaml.safe_load_all((BOOTSTRAP / "daemon.yaml").read_text())
POD = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
DOCKERFILE = (CHECKOUT / "Dockerfile").read_text()


def test_every_variable_is_one_that_the_daemon_reads():
    assert {one["name"] for one in CONTAINER["env"]} <= {PREFIX + name for name in VARIABLES}


def test_every_file_is_below_a_volume_and_in_the_secret_that_the_introduction_makes():
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in POD["volumes"]}
    named = {
        one["value"].removeprefix(mounts["secrets"] + "/") for one in CONTAINER["env"] if "/secrets/" in one["value"]
    }
    text = (BOOTSTRAP / "daemon.yaml").read_text()
    assert named == set(re.findall(r"--from-file=(\S+)", text))


def test_user_port_and_cache_are_those_of_the_image():
    user = f"{POD['securityContext']['runAsUser']}:{POD['securityContext']['runAsGroup']}"
    assert re.search(rf"^USER {user}$", DOCKERFILE, re.MULTILINE)
    (port,) = CONTAINER["ports"]
    assert f"OVERSPILL_LISTEN=:{port['containerPort']} " in DOCKERFILE
    assert "OVERSPILL_CACHE_DIR=/cache/" in DOCKERFILE
    assert SERVICE["spec"]["ports"][0]["targetPort"] == port["name"]


def test_network_policy_is_for_the_daemon_and_its_port():
    assert NETWORK["spec"]["podSelector"] == DEPLOYMENT["spec"]["selector"]
    (callers,) = NETWORK["spec"]["ingress"]
    (port,) = CONTAINER["ports"]
    assert callers["ports"] == [{"port": port["containerPort"]}]
    assert callers["from"], "an empty list is everybody"


def test_kustomization_applies_the_daemon_with_its_rights_and_names_its_image():
    kustomization = yaml.safe_load((BOOTSTRAP / "kustomization.yaml").read_text())
    assert kustomization["resources"] == ["rbac.yaml", "daemon.yaml"]
    (image,) = kustomization["images"]
    assert CONTAINER["image"] == f"{image['name']}:{image['newTag']}" == f"{image['newName']}:{image['newTag']}"


def test_probes_ask_for_addresses_that_the_daemon_has():
    health = (CHECKOUT / "reconciler" / "api" / "routes" / "health.py").read_text()
    for probe in ("livenessProbe", "readinessProbe"):
        assert f'"{CONTAINER[probe]["httpGet"]["path"]}"' in health


def test_namespace_and_account_are_those_that_the_rights_are_given_to():
    documents = list(yaml.safe_load_all((BOOTSTRAP / "rbac.yaml").read_text()))
    accounts = {
        (it["metadata"]["namespace"], it["metadata"]["name"]) for it in documents if it["kind"] == "ServiceAccount"
    }
    assert (DEPLOYMENT["metadata"]["namespace"], POD["serviceAccountName"]) in accounts


def test_secret_of_the_daemon_is_where_no_release_of_flux_could_read_it():
    assert {DEPLOYMENT["metadata"]["namespace"], SERVICE["metadata"]["namespace"]} == {"overspill-system"}
    assert Flux().namespace != "overspill-system"
    made = re.findall(r"create secret generic overspill -n (\S+)", (BOOTSTRAP / "daemon.yaml").read_text())
    made += re.findall(
        r"-n (\S+) create secret generic overspill ", (CHECKOUT / "docs" / "tutorial" / "real-fleet.md").read_text()
    )
    assert made == ["overspill-system"] * 2
