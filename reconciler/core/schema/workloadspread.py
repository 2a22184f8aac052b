"""OpenKruise's WorkloadSpread, in both of its versions: how the replicas of one workload are spread over subsets.

Faults of single fields are refused here, as an API server does that decodes them; the rules of Kruise's webhook over
several fields are in `fleet.spread.rules`, in Kruise's words. The fields, and those of later versions of it, are listed
in docs/background/upstream/workloadspread.md, "Fields".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from reconciler.core.schema.node_affinity import FieldRequirementFile, RequirementShape
from reconciler.core.schema.strict_model import Anything, Labels, Metadata, Strict, Text, refusal
from reconciler.core.schema.taints import TolerationFile
from reconciler.model.kubernetes import workload_spread as model
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.units import bounded_seconds
from reconciler.model.workload import Json, WorkloadRef
from reconciler.text.findings import shortened

RECOVERY = 300
"""Seconds after which Kruise counts a subset as schedulable again."""

MOST = 2**31 - 1
_PERCENT = re.compile(r"[0-9]{1,9}%")
_OBJECT = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LONGEST_NAME = 253


def _object_name(text: str) -> str:
    if len(text) > _LONGEST_NAME or not re.fullmatch(_OBJECT, text):
        likely = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:_LONGEST_NAME]
        what = f"{shortened(text)!r} cannot be the name of an object"
        raise refusal(what, f"try '{likely}'" if re.fullmatch(_OBJECT, likely) else "try lower-case letters and digits")
    return text


def _number_or_text(value: Json) -> Json:
    """Accept an IntOrString of Kubernetes; the rules over all subsets decide whether it is a number of replicas."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise refusal("must be a whole number or a percentage", "try 3 or '30%'")
    return value


ObjectName = Annotated[
    str, AfterValidator(_object_name), WithJsonSchema({"type": "string", "pattern": f"^{_OBJECT}$", "maxLength": 253})
]
NumberOrPercent = Annotated[
    int | str,
    BeforeValidator(_number_or_text),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]+%$"}]}),
]


class SpreadMetadata(Metadata):
    """Metadata of an object whose name has no place in a path."""

    name: ObjectName


class TermFile(Strict):
    """Requirements that hold together; one without any is met by nothing."""

    strangers: ClassVar[Mapping[str, str]] = {
        "matchLabels": "try matchExpressions: [{key: ..., operator: In, values: [...]}]",
        "nodeSelectorTerms": "a subset has one term: write its matchExpressions here",
    }

    match_expressions: list[RequirementShape] = Field(
        [], description="Requirements on labels of a cluster or of nodes."
    )
    match_fields: list[FieldRequirementFile] = Field([], description="Requirements on the name.")

    def value_of(self) -> Requirements:
        """Make the model's value."""
        labels, fields = self.match_expressions, self.match_fields
        return Requirements(
            labels=tuple(label.value_of() for label in labels), fields=tuple(field.value_of() for field in fields)
        )


class PreferredFile(Strict):
    """A term that speaks for a place, and how loudly."""

    weight: int = Field(description="By how much, 1 to 100.", json_schema_extra={"minimum": 1, "maximum": 100})
    preference: TermFile = Field(TermFile(), description="A node selector term.")


class SubsetFile(Strict):
    """A subset: an ordered target of replicas."""

    name: str = Field(
        "", description="Name in commits and tables; unique in the spread.", json_schema_extra={"minLength": 1}
    )
    required_node_selector_term: TermFile | None = Field(None, description="Which clusters, and nodes; none: all.")
    required_node_selector: TermFile | None = Field(
        None, description="The same under v1beta1's name; both names are read in both versions."
    )
    preferred_node_selector_terms: list[PreferredFile] = Field([], description="Which of these are better.")
    preferred_node_selector: list[PreferredFile] = Field([], description="The same under v1beta1's name.")
    tolerations: list[TolerationFile] = Field(
        [], description="Taints of its clusters and nodes that its pods put up with."
    )
    max_replicas: NumberOrPercent | None = Field(
        None, description="The most that it holds, `3` or `'30%'` of all, rounded up; none: no limit."
    )
    min_replicas: int = Field(
        0, description="Replicas before later subsets get more; not in Kruise.", json_schema_extra={"minimum": 0}
    )
    patch: Anything = Field({}, description="A strategic merge on the pod template, applied last.")

    def required(self) -> tuple[str, TermFile | None]:
        """Return the required term and the name of its field."""
        if self.required_node_selector_term is None and self.required_node_selector is not None:
            return "requiredNodeSelector", self.required_node_selector
        return "requiredNodeSelectorTerm", self.required_node_selector_term

    def preferred(self) -> tuple[str, list[PreferredFile]]:
        """Return the preferred terms and the name of their field."""
        if not self.preferred_node_selector_terms and self.preferred_node_selector:
            return "preferredNodeSelector", self.preferred_node_selector
        return "preferredNodeSelectorTerms", self.preferred_node_selector_terms

    def value_of(self) -> model.Subset:
        """Make the model's value."""
        required, preferred = self.required()[1], self.preferred()[1]
        return model.Subset(
            name=self.name,
            required=None if required is None else required.value_of(),
            preferred=tuple(
                model.PreferredTerm(weight=term.weight, term=term.preference.value_of()) for term in preferred
            ),
            tolerations=tuple(
                replace(toleration.value_of(), seconds=toleration.toleration_seconds) for toleration in self.tolerations
            ),
            most=None if self.max_replicas is None else bound(self.max_replicas),
            least=self.min_replicas,
            patch=self.patch,
        )


class AdaptiveFile(Strict):
    """When a subset counts as full although it is not."""

    disable_simulation_schedule: bool | None = Field(
        None, description="No effect, with a warning: nothing simulates scheduling."
    )
    reschedule_critical_seconds: int | None = Field(
        None,
        description="How long a replica may have no node; without it nothing moves, with a warning.",
        json_schema_extra={"minimum": 0},
    )
    unschedulable_duration: int = Field(
        RECOVERY,
        description=(
            "Seconds for which its subset gets nothing then; not in OpenKruise's WorkloadSpread, where it is 300."
        ),
        json_schema_extra={"minimum": 0},
    )


class StrategyFile(Strict):
    """Whether replicas that find no node go to later subsets."""

    type: str = Field(
        "",
        json_schema_extra={"enum": ["", "Fixed", "Adaptive"]},
        description="They wait, as without a word, or go to later subsets.",
    )
    adaptive: AdaptiveFile | None = Field(None, description="With `Adaptive`.")


class SpreadLabelRequirementFile(Strict):
    """The requirement on a label of a pod."""

    key: Text = Field(description="A label.")
    operator: str = Field(
        json_schema_extra={"enum": ["In", "NotIn", "Exists", "DoesNotExist"]}, description="How the label compares."
    )
    values: list[str] = Field([], description="Values, with `In` and `NotIn`.")


class SpreadLabelSelectorFile(Strict):
    """Pods by their labels; one that says nothing selects all."""

    match_labels: Labels = Field({}, description="Labels that they have.")
    match_expressions: list[SpreadLabelRequirementFile] = Field([], description="What else holds for their labels.")


class TargetFilterFile(Strict):
    """The pods of the workload that are counted, where it has several roles."""

    selector: SpreadLabelSelectorFile = Field(
        SpreadLabelSelectorFile(), description="The pods that subsets change; none: all."
    )
    replicas_path_list: list[str] = Field(
        [], description="Where the replicas are that are spread, and where a share is written."
    )


class TargetFile(Strict):
    """The workload, in the spread's own namespace."""

    strangers: ClassVar[Mapping[str, str]] = {"namespace": "leave it out: it is that of the spread"}

    api_version: str = Field(
        "", json_schema_extra={"minLength": 1}, description="Its group and version; the version does not count."
    )
    kind: str = Field(
        "", json_schema_extra={"minLength": 1}, description="Its kind: OpenKruise's, or one of those that are known."
    )
    name: str = Field("", json_schema_extra={"minLength": 1}, description="Its name.")

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def group_kind(self) -> str:
        """The kind as ``group/Kind``."""
        return f"{self.group}/{self.kind}"


class SpreadSpec(Strict):
    """The workload, and the subsets that its replicas go to, in order."""

    target_ref: TargetFile | None = Field(None, description="The workload, in the spread's namespace; required.")
    target_filter: TargetFilterFile = Field(
        TargetFilterFile(), description="Which of its pods are meant, where it has several roles."
    )
    subsets: list[SubsetFile] = Field([], description="The targets, in order.", json_schema_extra={"minItems": 1})
    schedule_strategy: StrategyFile = Field(StrategyFile(), description="What happens to replicas that find no node.")


class WorkloadSpreadFile(Strict):
    """How the replicas of one workload are spread over clusters and pools: OpenKruise's own kind, unchanged."""

    api_version: Literal["apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"]
    kind: Literal["WorkloadSpread"]
    metadata: SpreadMetadata
    spec: SpreadSpec = SpreadSpec()
    status: Any = Field(None, description="Reported by Kruise; not read.")

    @property
    def namespace(self) -> str:
        """The namespace of the spread and of its workload."""
        return self.metadata.namespace or "default"

    def value_of(self, target: TargetFile, *, path: str, line: int) -> model.WorkloadSpread:
        """Make the model's value of a valid file; `path` and `line` are its location."""
        spec, adaptive = self.spec, self.spec.schedule_strategy.adaptive
        adapts = adaptive is not None and self.spec.schedule_strategy.type == "Adaptive"
        seconds = (adaptive.reschedule_critical_seconds or 0) if adaptive is not None and adapts else 0
        selector = spec.target_filter.selector
        return model.WorkloadSpread(
            name=self.metadata.name,
            namespace=self.namespace,
            group=target.group,
            target=WorkloadRef(namespace=self.namespace, name=target.name, kind=target.kind),
            subsets=tuple(subset.value_of() for subset in spec.subsets),
            selector=selector.match_labels,
            selector_expressions=tuple(
                Requirement(
                    key=match_expression.key, operator=match_expression.operator, values=tuple(match_expression.values)
                )
                for match_expression in selector.match_expressions
            ),
            replicas_paths=tuple(spec.target_filter.replicas_path_list),
            reschedule=bounded_seconds(seconds) if seconds else None,
            recovery=bounded_seconds(adaptive.unschedulable_duration if adaptive is not None else RECOVERY),
            path=path,
            line=line,
        )


def bound(value: int | str) -> model.Bound | None:
    """Read a number or percentage of replicas; None for anything else."""
    if isinstance(value, int):
        return model.Bound(number=value) if 0 <= value <= MOST else None
    return model.Bound(number=int(value[:-1]), percent=True) if _PERCENT.fullmatch(value) else None
