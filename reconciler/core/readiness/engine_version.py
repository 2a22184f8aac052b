"""The version of an engine that runs in a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.core.engines.engine import Installation
from reconciler.core.readiness.check import AskedServer, CheckResult, missing, ok, unknown
from reconciler.core.readiness.question import Answers, ApiQuestion
from reconciler.core.workloads.paths import at
from reconciler.model.workload import Json

_LABEL = "app.kubernetes.io/version"
"""Set by Flux's manifests and by the charts of both engines. Argo CD's manifests have the tag of its image alone."""
_VERSION = re.compile(r"v?([0-9]+)\.([0-9]+)(\.[0-9]+)?([-+].*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineVersion:
    """The version of an engine, by the Deployments of its controllers (a `Check`)."""

    server: AskedServer
    title: str
    """The name of the engine."""
    installation: Installation
    install: str
    """The command line that installs it, or a newer version."""

    @property
    def questions(self) -> tuple[ApiQuestion, ...]:
        """The Deployments of the engine."""
        return (ApiQuestion(path="/apis/apps/v1/deployments", query=(("labelSelector", self.installation.selector),)),)

    def result(self, answers: Answers) -> CheckResult:
        """Compare the oldest version of its Deployments with the one that is needed."""
        subject = f"{self.title}'s version"
        look = self.server.kubectl(
            "get", "deployments", "--all-namespaces", f"--selector={self.installation.selector}", "-L", _LABEL
        )
        answer = answers[self.questions[0]]
        if answer.open:
            return unknown(subject, answer.why, look)
        items = (answer.body or {}).get("items") or ()
        versions = sorted(version for item in items for version in self._versions(item))
        if not versions:
            return unknown(subject, f"no Deployment with {self.installation.selector} tells it", look)
        number, name = versions[0]
        if number < self.installation.minimum:
            least = ".".join(map(str, self.installation.minimum))
            return missing(subject, f"{name}, and {least} or newer is needed", self.install.rpartition(" && ")[2])
        return ok(subject, name)

    def _versions(self, deployment: Json) -> Iterator[tuple[tuple[int, int], str]]:
        """Yield the version that a Deployment is of, as a number and as text; none for one of another project."""
        names = [str((at(deployment, ("metadata", "labels")) or {}).get(_LABEL) or "")]
        for container in at(deployment, ("spec", "template", "spec", "containers")) or () if not names[0] else ():
            image, _, tag = str(container.get("image")).partition("@")[0].rpartition(":")
            names += [tag] if self.installation.image and image.rpartition("/")[2] == self.installation.image else []
        for name in names:
            if found := _VERSION.fullmatch(name):
                yield (int(found[1]), int(found[2])), name
