"""The programs of others that our tests run: found on this machine, or built once by its Go.

``python -m tests.e2e.components`` makes those of `make e2e` ready and prints one line each, and with the argument
``e2e-platform`` those of `make e2e-platform`. What cannot be had is named with the reason; the tests that need it are
skipped with the same words. A binary is taken from ``KUBEBUILDER_ASSETS`` or the
``PATH`` when it is there. Otherwise it is built from ``tools/<module>/go.mod``, one module for each project, since each
has to be built with the dependencies that it was released with. Binaries land in ``$XDG_CACHE_HOME/overspill-e2e`` in a
directory named by what they were built from.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

TOOLS = Path(__file__).parent / "tools"
BUDGET = 1800
"""Seconds for all builds together, so that everything that `.ci/run` does stays within an hour. On two cores that have
nothing else to do they take about nine tenths of it without Gitea, whose build takes a quarter more: it is begun last,
and where its time runs out, a later run builds it."""

PLATFORM = "e2e-platform"
"""The target that builds the controllers of a GPU platform, which `.ci/run` has no time to build."""

_KUBERNETES = "k8s.io/kubernetes/cmd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A program: the module of ours in `tools/` that pins it, and its package.

    `stamped` has its version linked in, `tags` are Go's build tags, and with `cgo` it needs a C compiler. `target` is
    the target of the Makefile that builds it.
    """

    name: str
    module: str
    package: str
    target: str = "e2e"
    stamped: bool = False
    tags: str = ""
    cgo: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A program that can be run. `how` says where it comes from."""

    path: Path
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A program that cannot be had here, and why."""

    reason: str


COMPONENTS = {
    component.name: component
    for component in (
        Component(name="etcd", module="etcd", package="go.etcd.io/etcd/server/v3"),
        *(
            Component(name=name, module="kubernetes", package=f"{_KUBERNETES}/{name}", stamped=True)
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
        ),
        Component(name="kwok", module="kwok", package="sigs.k8s.io/kwok/cmd/kwok"),
        Component(name="kustomize", module="kustomize", package="sigs.k8s.io/kustomize/kustomize/v5"),
        Component(name="helm", module="helm", package="helm.sh/helm/v3/cmd/helm"),
        *(
            Component(name=name, module=name, package=f"github.com/fluxcd/{name}")
            for name in ("source-controller", "kustomize-controller", "helm-controller", "notification-controller")
        ),
        Component(name="argocd", module="argocd", package="github.com/argoproj/argo-cd/v3/cmd"),
        Component(name="karpenter", module="karpenter", package="sigs.k8s.io/karpenter/kwok"),
        # The last: it takes a quarter of the time, and one module of tests needs it.
        # Without the second tag its own connections lock each other out of SQLite.
        Component(
            name="gitea",
            module="gitea",
            package="code.gitea.io/gitea",
            tags="sqlite,sqlite_unlock_notify",
            cgo=True,
        ),
        Component(name="lws", module="lws", package="sigs.k8s.io/lws/cmd", target=PLATFORM),
        Component(name="jobset", module="jobset", package="sigs.k8s.io/jobset", target=PLATFORM),
        Component(name="kueue", module="kueue", package="sigs.k8s.io/kueue/cmd/kueue", target=PLATFORM),
        Component(
            name="trainer",
            module="trainer",
            package="github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
            target=PLATFORM,
        ),
        Component(
            name="dra-example-kubeletplugin",
            module="dra-example-driver",
            package="sigs.k8s.io/dra-example-driver/cmd/dra-example-kubeletplugin",
            target=PLATFORM,
        ),
        *(
            Component(
                name=f"keda-{name}",
                module="keda",
                package=f"github.com/kedacore/keda/v2/cmd/{name}",
                target=PLATFORM,
            )
            for name in ("operator", "adapter")
        ),
        Component(
            name="kuberay-operator",
            module="kuberay",
            package="github.com/ray-project/kuberay/ray-operator",
            target=PLATFORM,
        ),
        Component(
            name="training-operator",
            module="training-operator",
            package="github.com/kubeflow/training-operator/cmd/training-operator.v1",
            target=PLATFORM,
        ),
        Component(
            name="mpi-operator",
            module="mpi-operator",
            package="github.com/kubeflow/mpi-operator/cmd/mpi-operator",
            target=PLATFORM,
        ),
        *(
            Component(
                name=f"volcano-{name}",
                module="volcano",
                package=f"volcano.sh/volcano/cmd/{name}",
                target=PLATFORM,
            )
            for name in ("controller-manager", "scheduler")
        ),
        # They ask the rules of a project: programs of ours, with the project's own functions. After Kueue and KEDA,
        # with which they share packages.
        *(
            Component(name=name, module=name, package=".", target=PLATFORM)
            for name in ("jobset-webhooks", "kueue-webhooks")
        ),
        *(
            Component(name=f"{module}-rules", module=module, package=".", target=PLATFORM)
            for module in (
                "mpi-operator",
                "kuberay",
                "training-operator",
                "kserve",
                "volcano",
                "kruise",
                "argo-rollouts",
            )
        ),
    )
}


@cache
def find(name: str) -> Ready | Missing:
    """Return a program without building it."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    for where, path in (("KUBEBUILDER_ASSETS", assets), ("PATH", os.environ.get("PATH", ""))):
        if found := shutil.which(name, path=path) if path else None:
            return Ready(path=Path(found), how=f"from {where}")
    if shutil.which("go") is None:
        return Missing(reason="not on the PATH, and Go is missing to build it (https://go.dev/doc/install)")
    built = _target(COMPONENTS[name])
    if built.exists():
        return Ready(path=built, how="built before")
    told = built.with_suffix(".error")
    reason = told.read_text() if told.exists() else f"not built yet (run `make {COMPONENTS[name].target}`)"
    return Missing(reason=reason)


def build(name: str, timeout: float) -> Ready | Missing:
    """Return a program, and build it if need be. A build that fails leaves its last words for `find`."""
    found = find(name)
    if isinstance(found, Ready) or shutil.which("go") is None:
        return found
    component = COMPONENTS[name]
    target = _target(component)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished, told = target.with_suffix(f".{os.getpid()}"), target.with_suffix(".error")
    # Nobody debugs them, and a sixth of the time goes into what a debugger needs.
    small = ["-gcflags=all=-dwarf=false", "-ldflags", f"-s -w {_stamp(component)}"]
    flags = ["-p", "2", "-trimpath", "-tags", component.tags, *small, "-o", str(unfinished)]
    began = time.monotonic()
    find.cache_clear()
    try:
        done = subprocess.run(
            ["nice", "-n", "19", "go", "build", *flags, component.package],
            cwd=TOOLS / component.module,
            env=_environment() | ({"CGO_ENABLED": "1"} if component.cgo else {}),
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
        error = "" if done.returncode == 0 else _last_words(done.stderr) or f"exit code {done.returncode}"
    except subprocess.TimeoutExpired:
        error = f"not built within {timeout:.0f} s"
    took = time.monotonic() - began
    if error:
        unfinished.unlink(missing_ok=True)
        told.write_text(error)
        return Missing(reason=error)
    unfinished.rename(target)
    told.unlink(missing_ok=True)
    return Ready(path=target, how=f"built in {took:.0f} s")


def pinned(name: str) -> str:
    """Return the released module that holds a program, as ``path@version``."""
    component = COMPONENTS[name]
    package = PurePosixPath(component.package)
    for module in map(str, (package, *package.parents)):
        if found := _required(component.module, module):
            return f"{module}@{found}"
    raise AssertionError(f"{component.module}/go.mod does not require the module of {package}")


def pinned_module(tool: str, module: str) -> str:
    """Return a released module as ``path@version``, in the version that a directory of `tools/` requires."""
    version = _required(tool, module)
    assert version, f"{tool}/go.mod does not require {module}"
    return f"{module}@{version}"


def _required(tool: str, module: str) -> str:
    text = (TOOLS / tool / "go.mod").read_text()
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", text, re.MULTILINE)
    return found[1] if found else ""


def sources(module: str) -> Path | Missing:
    """Return where a released module lies (``path@version``), for what it holds beside Go; download it if need be."""
    if shutil.which("go") is None:
        return Missing(reason=f"{module}: Go is missing to download it (https://go.dev/doc/install)")
    done = subprocess.run(
        ["go", "mod", "download", "-json", module],
        cwd=TOOLS,
        env=_environment() | {"GOFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout or "{}")
    return (
        Path(told["Dir"])
        if "Dir" in told
        else Missing(reason=f"{module}: {told.get('Error') or _last_words(done.stderr)}")
    )


def _target(component: Component) -> Path:
    """Name the binary by all that goes into it: a new pin is a new file, and the old one stays for other checkouts."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(f"{platform.machine()} {sys.platform}".encode())
    module = TOOLS / component.module
    own = (*module.glob("*.go"), *(TOOLS / "refusals").iterdir()) if component.package == "." else ()
    if "/webhooks => " in (module / "go.mod").read_text():
        own += (*(TOOLS / "webhooks").iterdir(),)
    for path in (module / "go.mod", module / "go.sum", *sorted(own)):
        digest.update(path.read_bytes())
    return home / "overspill-e2e" / f"{component.module}-{digest.hexdigest()[:16]}" / component.name


def _stamp(component: Component) -> str:
    """Link the version in that Kubernetes' own build would: without it the API server calls itself v0.0.0."""
    if not component.stamped:
        return ""
    version = pinned(component.name).partition("@")[2]
    major, minor, _ = version.removeprefix("v").split(".", 2)
    names = zip(("gitVersion", "gitMajor", "gitMinor"), (version, major, minor), strict=True)
    return " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in names)


def _environment() -> dict[str, str]:
    """Build what is pinned and nothing else: no other toolchain, no edits of go.mod, no C compiler."""
    return {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


def _last_words(stderr: str) -> str:
    """Leave out what was downloaded; a compiler's first complaints are the ones that matter."""
    lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith("go: downloading")]
    return " ".join(" ".join(lines[:6]).split())[:600]


def main(target: str = "e2e") -> None:
    """Make every component of a target ready and say how; end well even so, since tests say what they miss."""
    until = time.monotonic() + BUDGET
    for name in (component.name for component in COMPONENTS.values() if component.target == target):
        outcome = build(name, until - time.monotonic())
        told = outcome.how if isinstance(outcome, Ready) else f"MISSING: {outcome.reason}"
        sys.stdout.write(f"{name:<24} {told}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
