"""The policy on trial: the BurstPolicy of a file, checked before the first run, so that errors name its own lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from reconciler.core.fleet.read_file import parse_file
from reconciler.core.schema import validation_findings, yaml
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.yaml import Document
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.lab.scenario import Scenario
from reconciler.model.workload import Json
from reconciler.text.findings import Finding
from reconciler.text.wording import join_names

_KIND = "BurstPolicy"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPolicy:
    """A BurstPolicy without errors of its own."""

    name: str
    """The name of its runs."""
    document: Document

    @property
    def data(self) -> bytes:
        """Its YAML, without other documents of its file."""
        return yaml.emit(self.document.value).encode()

    def check(self, scenario: Scenario) -> None:
        """Raise InvalidInput, with lines of the policy's file, where it names clusters that a scenario lacks."""
        names = sorted(cluster.name for cluster in scenario.clusters)
        candidates = BurstPolicyFile.model_validate(self.document.value).spec.clusters
        findings = [
            Finding(
                loc=("spec", "clusters", index, "name"),
                message=f"scenario {scenario.name} has no cluster {candidate.name}",
                hint=f"it has {join_names(names)}: name these in the policy, or describe yours in a LabScenario",
            )
            for index, candidate in enumerate(candidates)
            if candidate.name is not None and candidate.name not in names
        ]
        if findings:
            document = self.document
            raise InvalidInput(
                problems=tuple(
                    finding.problem(path=document.path, line=document.line(finding.loc)) for finding in findings
                )
            )


def read_policy(path: Path, name: str, *, shown: str = "") -> TrialPolicy:
    """Read the policy of a file. Raises InvalidInput with every problem of it, by path and line.

    `shown` stands in errors for the path of a policy that comes with the package.
    """
    try:
        return parse_policy(path.read_bytes(), path=shown or str(path), name=name)
    except OSError as error:
        raise InvalidInput(f"reading {path}: {error.strerror}") from error


def parse_policy(data: bytes, *, path: str, name: str) -> TrialPolicy:
    """Read the one BurstPolicy of a file's content; objects of other kinds are passed over. Raises InvalidInput."""
    documents = yaml.parse(data, path)
    kinds = [document.value.get("kind") if isinstance(document.value, Mapping) else None for document in documents]
    policies = [document for document, kind in zip(documents, kinds, strict=True) if kind == _KIND]
    if len(policies) != 1:
        others = join_names(sorted({kind for kind in kinds if isinstance(kind, str)}))
        held = f"holds {others} and no {_KIND}" if others else f"holds no {_KIND}"
        if policies:
            held = f"holds {len(policies)} policies, and one is tried at a time"
        hint = "try a file for each" if policies else f"try a file with kind: {_KIND}"
        raise InvalidInput(problems=(Problem(path=path, message=held, hint=hint),))
    (document,) = policies
    errors = [problem for problem in parse_file(document.data).problems if problem.severity is Severity.ERROR]
    if errors:
        lines_above = document.above
        raise InvalidInput(
            problems=tuple(replace(problem, path=path, line=problem.line + lines_above) for problem in errors)
        )
    return TrialPolicy(name=name, document=document)


def policy_findings(value: Json) -> tuple[Finding, ...]:
    """Check a policy by itself."""
    try:
        BurstPolicyFile.model_validate(value)
    except ValidationError as error:
        return validation_findings(error, BurstPolicyFile)
    return ()
