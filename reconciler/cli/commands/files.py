"""`init`, `check` and `schema`: the fleet repository as files on this disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

import click

from reconciler.cli import options
from reconciler.environment import PREFIX

CheckForm: TypeAlias = Literal["table", "json", "github", "codequality", "sarif", "junit"]

KINDS = (
    "Fleet", "Cluster", "Workspace", "BurstPolicy", "Notification", "WorkloadTemplate", "WorkloadPlacement",
    "GPUProvisioningRequest", "GPRTemplate", "GPRTemplateBinding", "WorkspacePolicy", "WorkloadKind", "WorkloadSpread",
    "Observation",
)  # fmt: skip # a list of words, filled line by line
"""The kinds of `core.schema.KINDS`, which takes long to import; a test keeps both alike."""


@options.examples(
    "overspill init fleet --git",
    "git clone git@git.example.com:ml/fleet.git && overspill init fleet",
    "overspill init fleet --from-kubeconfig",
    "overspill init fleet --ci github",
    "overspill init fleet --from-kubeconfig --context worker-1 --context worker-2 --primary worker-1",
)
@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option("--git", "with_git", is_flag=True, help="Make it a git repository and commit the files to `main`.")
@click.option("--policy", metavar="NAME", help="A ready-made policy, in the place of the usual one.")
@click.option(
    "--ci",
    "host",
    type=click.Choice(["github", "gitlab", "pre-commit"]),
    help="Add the pipeline that checks pull requests and shows their plan, or the hook that checks before a commit, to"
    " a fleet repository that is there too.",
)
@click.option("--from-kubeconfig", is_flag=True, help="Describe the clusters of a kubeconfig, and copy no examples.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar=f"{PREFIX}KUBECONFIG",
    help=f"The kubeconfig  [default: {PREFIX}KUBECONFIG, else kubectl's]",
)
@click.option("--context", "contexts", multiple=True, metavar="NAME", help="A context to take; all if none is named.")
@click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="CONTEXT=NAME",
    help="The name of a context's cluster, in the place of one made of the context's name.",
)
@click.option("--primary", metavar="NAME", help="The cluster or context where the workloads live.")
@click.option("--workspace", metavar="NAME", help="The name of the tenant  [default: default]")
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NS",
    help="A namespace of its workloads; if none is named, those with pods that ask for GPUs.",
)
@click.option(
    "--engine",
    type=click.Choice(["argocd", "flux"]),
    help="The engine of clusters in which none is seen, or several are.",
)
@click.option("--argocd", metavar="NAME", help="The cluster whose Argo CD deploys to all, where several run one.")
@click.option("--repo-url", metavar="URL", help="Where engines clone from  [default: the remote `origin`]")
def init(
    directory: Path, *, with_git: bool, policy: str | None, host: str | None, from_kubeconfig: bool, **answers: Any
) -> None:
    """Begin a fleet repository in DIRECTORY.

    Copies the recommended layout there, to be changed. DIRECTORY must be empty or not exist yet; a fresh clone of an
    empty repository will do. Broken off, the same command goes on where it stopped.

    With --from-kubeconfig it asks the API server of each context for its nodes and engines, by the login that the
    daemon would use, and describes these clusters in the place of the examples. What they do not tell is asked on a
    terminal; each question has an option.
    """
    if from_kubeconfig:
        from reconciler.cli.actions.setup import kubeconfig_init
        from reconciler.model.policy import EngineName

        workspace, engine = answers.pop("workspace") or "default", answers.pop("engine")
        given = kubeconfig_init.Answers(
            policy=policy, host=host, workspace=workspace, engine=engine and EngineName(engine), **answers
        )
        kubeconfig_init.init_from_kubeconfig(directory, given, with_git=with_git)
        return
    for name, value in answers.items():
        if value:
            flag = {
                "contexts": "context",
                "namespaces": "namespace",
                "renames": "rename",
                "repo_url": "repo-url",
            }.get(name, name)
            raise click.UsageError(f"--{flag} goes with --from-kubeconfig")
    from reconciler.cli.actions.setup import init as action

    action.init(directory, with_git=with_git, policy=policy, host=host)


@options.examples(
    "overspill check",
    "overspill check fleet/",
    "overspill check fleet/policies/serving.yaml",
    "overspill check fleet/ --observations observations/",
    "overspill check -o json | jq '.problems[] | select(.severity == \"error\")'",
    "overspill check -o github",
)
@click.command()
@click.argument("path", type=options.ExistingPath(), default=".")
@click.option(
    "--observations",
    type=options.ExistingPath(),
    help="A file or directory of observations: templates are compared with what their primaries run.",
)
@options.forms(
    "github",
    "codequality",
    "sarif",
    "junit",
    about="annotations of GitHub Actions, GitLab's Code Quality, SARIF and JUnit's XML are for CI",
)
def check(path: Path, observations: Path | None, form: CheckForm) -> None:
    """Check every file of a fleet repository as the daemon would.

    Prints all problems at once, as path:line: field: message (try ...), errors first. Exits with 1 when there is an
    error. Needs no git and no network, so it fits a pre-commit hook. PATH is a directory, or a file: of that its own
    problems are printed, as the repository has them that it is in.
    """
    from reconciler.cli.actions import files as action

    action.check(path, observations, form)


@options.examples(
    "overspill schema",
    "overspill schema BurstPolicy",
    "overspill schema --all --out schemas/",
)
@click.command()
@click.argument("kind", metavar="[KIND]", required=False, type=click.Choice(KINDS, case_sensitive=False))
@click.option("--all", "every", is_flag=True, help="Write the schemas of all kinds; needs --out.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write files to DIR.")
def schema(kind: str | None, out: Path | None, *, every: bool) -> None:
    """Print the JSON Schema of a kind, for editors and other tools.

    Without KIND it lists the kinds.
    """
    from reconciler.cli.actions import files as action

    action.schema(kind, out, every=every)
