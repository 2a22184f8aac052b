"""`doctor` tells what the files of a fleet lack before anything is asked of a cluster."""

from __future__ import annotations

import re

from reconciler.core.readiness.check import Readiness
from reconciler.core.readiness.git import files_result, push_result, repo_url_result, unreadable
from reconciler.errors import HostKeyChanged, Transient
from tests.builders.fleet_files import FLEET, cluster, load, warnings


def test_command_line_beside_a_failed_fetch_works_and_sends_nothing_to_a_host_that_is_not_known() -> None:
    url = "ssh://git@127.0.0.1:18122/fleet.git"
    assert unreadable(url, Transient("no answer")).remedy == f"git ls-remote {url}"
    told = unreadable(url, HostKeyChanged("ALARM: (try: send nothing to this host)"))
    assert (told.readiness, told.remedy) == (Readiness.MISSING, "")
    assert push_result("placements", url, HostKeyChanged("ALARM"), rules_shown=False).remedy == ""


def test_warnings_of_files_are_counted() -> None:
    assert files_result(load()).seen.endswith("1 template that may burst")
    cordoned = load({**FLEET, "clusters/worker-2.yaml": cluster("worker-2", spec="{availability: Cordoned}")})
    assert len(warnings(cordoned)) == 1
    told = files_result(cordoned)
    assert (told.readiness, told.seen[-40:]) == (Readiness.OK, "may burst; 1 warning: see `overspill check`"[-40:])


def test_address_that_engines_fetch_from_is_needed_where_an_engine_fetches() -> None:
    spec = "{engine: manifests}"
    plain = {**FLEET, **{f"clusters/{name}.yaml": cluster(name, spec=spec) for name in ("worker-1", "worker-2")}}
    url = "https://bot:s3cret-w0rd@git.example.com/acme/fleet.git"
    assert repo_url_result(load(plain), url) is None
    flux = {**plain, "clusters/worker-2.yaml": cluster("worker-2", spec="{engine: flux}")}
    told = repo_url_result(load(flux), url)
    assert told is not None
    assert (told.readiness, told.subject) == (Readiness.MISSING, "spec.repoURL")
    assert told.seen == "not set, so Flux cannot be told where to fetch the output branch"
    (document,) = re.findall(r"{.*}", told.remedy)
    without = {path: text for path, text in flux.items() if "kind: Fleet" not in text}
    assert "s3cret" not in document
    assert repo_url_result(load({**without, "fleet.yaml": document}), url) is None
