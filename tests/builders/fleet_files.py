"""A small fleet as text, for tests that change one thing about it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from textwrap import dedent

from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.errors import Problem, Severity
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired


def text(source: str) -> str:
    return dedent(source).lstrip("\n")


def cluster(name: str, spec: str = "") -> str:
    return text(f"""
        apiVersion: overspill.dev/v1alpha1
        kind: Cluster
        metadata:
          name: {name}
        """) + (f"spec: {spec}\n" if spec else "")


def workspace(name: str = "llm", more: str = "") -> str:
    return text(f"""
        apiVersion: overspill.dev/v1alpha1
        kind: Workspace
        metadata:
          name: {name}
        spec:
          primaryCluster: worker-1
          clusters: [worker-1, worker-2]
          namespaces: [{name}-demo]
        """) + "".join(f"  {line}\n" for line in more.splitlines())


def policy(name: str = "gpu", spec: str = "{}") -> str:
    return (
        text(f"""
        apiVersion: overspill.dev/v1alpha1
        kind: BurstPolicy
        metadata:
          name: {name}
        """)
        + f"spec: {spec}\n"
    )


TEMPLATE = text("""
    apiVersion: gpr.kubeslice.io/v1alpha1
    kind: WorkloadTemplate
    metadata:
      name: vllm
      namespace: kubeslice-acme
    spec:
      workspaceName: llm
      burstDuration: 10m
      manifestResources:
      - name: server
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: vllm, namespace: llm-demo}
          spec:
            selector: {matchLabels: {app: vllm}}
            template: {metadata: {labels: {app: vllm}}, spec: {containers: [{name: server, image: vllm:1}]}}
            replicas: "{{ replicas }}"
      steps:
      - name: server
        type: manifest
    """)

WRAPPING = "allowedKinds: [workload.codeflare.dev/AppWrapper]"
"""The line of a Workspace that may deploy what `wrapping` makes."""

WRAPPED_DEPLOYMENT = (
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: vllm, namespace: llm-demo}, spec: {replicas: '{{ replicas"
    " }}', selector: {matchLabels: {app: vllm}}, template: {metadata: {labels: {app: vllm}}, spec: {containers: [{name:"
    " server, image: 'vllm:1'}]}}}}"
)


def wrapping(*objects: str, name: str = "vllm") -> str:
    """Return the template with an AppWrapper of these objects, in flow style, in place of its Deployment."""
    head, _, rest = TEMPLATE.replace("name: vllm", f"name: {name}").partition("      apiVersion: apps/v1\n")
    components = "".join(f"        - template: {made}\n" for made in objects)
    wrapper = f"""\
      apiVersion: workload.codeflare.dev/v1beta2
      kind: AppWrapper
      metadata: {{name: {name}, namespace: llm-demo}}
      spec:
        components:
"""
    return head + wrapper + components + rest[rest.index("  steps:") :]


PODS = "        template: {metadata: {labels: {app: vllm}}, spec: {containers: [{name: server, image: vllm:1}]}}\n"
"""The line of the template's pods."""

FLEET: Mapping[str, str] = {
    "clusters/worker-1.yaml": cluster("worker-1"),
    "clusters/worker-2.yaml": cluster("worker-2"),
    "policies/gpu.yaml": policy(),
    "templates/vllm.yaml": TEMPLATE,
    "workspaces/llm.yaml": workspace(),
}


_parsed = lru_cache(maxsize=200)(parse_file)
"""Most files of most fleets are the same; the source reader keeps what it has read as well."""


def load(files: Mapping[str, str | bytes] = FLEET) -> Desired:
    data = {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}
    return assemble(CommitId("c" * 40), {path: _parsed(content) for path, content in data.items()})


def with_template(template: str) -> Desired:
    return load({**FLEET, "templates/vllm.yaml": template})


def errors(desired: Desired) -> list[str]:
    return [str(problem) for problem in desired.problems if problem.severity is Severity.ERROR]


def warnings(desired: Desired) -> list[str]:
    return [str(problem) for problem in desired.problems if problem.severity is Severity.WARNING]


def lines(problems: tuple[Problem, ...]) -> list[str]:
    return [str(problem) for problem in problems]
