"""The common part of EGS's templates and placements, in every spelling of its documents and tables of parameters.

Where EGS's documents contradict each other, docs/reference/egs.md, R1 to R16, settle it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from reconciler.core.schema.strict_model import Anything, Duration, Name, Strict, Text, refusal
from reconciler.core.schema.urls import ChartAddress
from reconciler.model.workload import DeletionPolicy, Json, StepType

READER = "placements-read"
"""The Secret that Flux reads the repository with."""

HOOK = "placements-hook"
"""The Secret of the webhooks that announce pushes."""


def _timeout(value: Json) -> Json:
    """Read an empty timeout as none, as EGS writes it."""
    return None if value == "" else value


class HelmFlagsFile(Strict):
    """EGS's helmFlags since 1.15.5."""

    atomic: bool = Field(False, description="Undo an installation that fails.")
    cleanup_on_fail: bool = Field(False, description="Remove what a failed one left.")
    create_namespace: bool = Field(False, description="Make the release's namespace.")
    skip_crds: bool = Field(False, alias="skipCRDs", description="Leave the chart's CRDs out.")
    wait: bool = Field(False, description="Wait until it is healthy before the next step.")
    timeout: Annotated[Duration | None, BeforeValidator(_timeout)] = Field(None, description="For how long.")


class SecretRefFile(Strict):
    """The Secret with ``username`` and ``password`` for the chart's repository; a plain name will do."""

    # The plain name: docs/reference/egs.md, R7. Docstrings of this module are descriptions of the published schemas.
    model_config = ConfigDict(json_schema_extra=lambda schema: _or(schema, {"type": "string"}))

    name: Name = Field(
        description=(
            "Its name; the plain name will do. Not `placements-read` or `placements-hook`, which are Overspill's own."
        )
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Json) -> Json:
        """Read a bare name as an object with that name."""
        return {"name": value} if isinstance(value, str) else value

    @field_validator("name")
    @classmethod
    def _not_ours(cls, name: str) -> str:
        """Refuse Overspill's own Secrets: they would be sent to the server of the chart repository."""
        if name in (READER, HOOK):
            raise refusal(f"{name} is a Secret of Overspill's own", "try a Secret with the login of this repository")
        return name


def _or(schema: Json, other: Json) -> None:
    """Let a published schema accept another form as well."""
    whole = dict(schema)
    schema.clear()
    schema["anyOf"] = [whole, other]


def _flags_form(value: Json) -> str:
    """Return whether helmFlags have the older text form or the object form (docs/reference/egs.md, R10)."""
    return "<object>" if isinstance(value, (Mapping, HelmFlagsFile)) else "<text>"


class HelmConfigFile(Strict):
    """A chart to install."""

    name: str = Field("", description="What steps call it; `releaseName` by default, with a warning.")
    chart: Text = Field(description="The chart, with its repository's alias: vllm/vllm-stack.")
    release_name: Text = Field(description="The release; 53 characters at most.")
    release_namespace: Text = Field(description="Its namespace.")
    repo_name: str = Field("", description="The repository's alias.")
    repo_url: ChartAddress = Field(
        "", alias="repoURL", description="The repository, `https://` or `oci://`; `http://` to localhost only."
    )
    version: str = Field("", description="The chart's version; required unless the workspace has allowUnpinnedCharts.")
    values: Anything = Field({}, description="The chart's values.")
    secret_ref: SecretRefFile | None = Field(
        None, description="A Secret with `username` and `password` for the repository."
    )
    helm_flags: (
        Annotated[
            Annotated[str, Tag("<text>")] | Annotated[HelmFlagsFile, Tag("<object>")],
            Discriminator(_flags_form),
        ]
        | None
    ) = Field(None, description="Helm's flags.")


class ManifestResourceFile(Strict):
    """A Kubernetes object, under ``manifest`` or, as in EGS's REST interface, with its fields beside its name."""

    # The flattened form: docs/reference/egs.md, R14.
    model_config = ConfigDict(
        json_schema_extra=lambda schema: _or(
            schema,
            {"type": "object", "required": ["name", "apiVersion", "kind"], "not": {"required": ["manifest"]}},
        )
    )

    name: str = Field("", description="Name in steps; the object's name by default.")
    manifest: Anything = Field(description="The object as kubectl apply takes it.")

    @model_validator(mode="before")
    @classmethod
    def _wrap(cls, value: Json) -> Json:
        """Wrap the flattened form, keeping every field of the object: a Deployment's spec must survive."""
        if not isinstance(value, Mapping) or "manifest" in value or not ("apiVersion" in value or "kind" in value):
            return value
        rest = {key: child for key, child in value.items() if key not in ("name", "namespace", "metadata")}
        metadata = {key: value[key] for key in ("name", "namespace") if key in value}
        if isinstance(value.get("metadata"), Mapping):
            metadata |= value["metadata"]
        head = {key: rest.pop(key) for key in ("apiVersion", "kind") if key in rest}
        return {"name": value.get("name", metadata.get("name")), "manifest": {**head, "metadata": metadata, **rest}}


class CommandFile(Strict):
    """A kubectl command line. The daemon never runs it."""

    name: Text = Field(description="What steps call it.")
    cmd: Text = Field(description="The command line.")


class StepFile(Strict):
    """A step of the deployment, in order."""

    name: Text = Field(description="The name of an entry of the list that the type points to.")
    type: Annotated[StepType, Field(strict=False)] = Field(
        description="helm (helmConfig), manifest (manifestResources) or command (cmdExec)."
    )
    preodic_check_time: Any = Field(None, description="EGS's, of its worker kind; no effect.")


class DeployFile(Strict):
    """The fields that templates and placements share."""

    helm_config: list[HelmConfigFile] = Field([], description="Charts to install.")
    helm_configs: list[HelmConfigFile] = Field([], description="The same under the name of EGS's REST interface.")
    manifest_resources: list[ManifestResourceFile] = Field([], description="Kubernetes objects to apply.")
    cmd_exec: list[CommandFile] = Field([], description="Kubectl command lines; the daemon never runs one.")
    steps: list[StepFile] = Field([], description="The order in which all of it is applied; only what a step names is.")
    burst_duration: Duration | None = Field(
        None,
        description=(
            "How long a placement lives from its commit on; the policy's default otherwise, and its "
            "`max` at most, with a warning."
        ),
    )
    deletion_policy: Annotated[DeletionPolicy, Field(strict=False)] = Field(
        DeletionPolicy.DELETE, description="Whether the objects go with their placement, or stay."
    )
    service_account: str = Field(
        "",
        description=(
            "The service account of commands, in `kubeslice-system`; no effect, with a warning, where"
            " no step is a command."
        ),
    )
    service_account_name: str = Field("", description="The same under the name of EGS's multi-cluster kind.")

    @model_validator(mode="after")
    def _agree(self) -> DeployFile:
        """Refuse contradicting values under two spellings of one field (docs/reference/egs.md, R3 and R8)."""
        if self.helm_config and self.helm_configs and self.helm_config != self.helm_configs:
            raise refusal("has both helmConfig and helmConfigs, and they differ", "try keeping helmConfig")
        if self.service_account and self.service_account_name and self.service_account != self.service_account_name:
            raise refusal("has both serviceAccount and serviceAccountName, and they differ", "try keeping one")
        return self
