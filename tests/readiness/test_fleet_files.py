"""`doctor` tells what the files of a fleet lack before anything is asked of a cluster."""

from __future__ import annotations

from reconciler.core.readiness.check import Readiness
from reconciler.core.readiness.git import files_result, repo_url_result
from tests.builders.fleet_files import FLEET, cluster, load, warnings


def test_warnings_of_files_are_counted() -> None:
    assert files_result(load()).seen.endswith("1 template that may burst")
    cordoned = load({**FLEET, "clusters/worker-2.yaml": cluster("worker-2", spec="{availability: Cordoned}")})
    assert len(warnings(cordoned)) == 1
    told = files_result(cordoned)
    assert (told.readiness, told.seen[-40:]) == (Readiness.OK, "may burst; 1 warning: see `overspill check`"[-40:])


def test_address_that_engines_fetch_from_is_needed_where_an_engine_fetches() -> None:
    spec = "{engine: manifests}"
    plain = {**FLEET, **{f"clusters/{name}.yaml": cluster(name, spec=spec) for name in ("worker-1", "worker-2")}}
    assert repo_url_result(load(plain)) is None
    flux = {**plain, "clusters/worker-2.yaml": cluster("worker-2", spec="{engine: flux}")}
    told = repo_url_result(load(flux))
    assert told is not None
    assert (told.readiness, told.subject) == (Readiness.MISSING, "spec.repoURL")
    assert told.seen == "not set, so Flux cannot be told where to fetch the output branch"
