"""Questions to API servers, and their answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias

from reconciler.core.observe.kubernetes.api_versions import PATH, read_api_versions
from reconciler.core.observe.kubernetes.resources import plural_of
from reconciler.model.workload import Json

_REVIEWS = "/apis/authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiQuestion:
    """A request to an API server that changes nothing there."""

    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: str = ""
    """The JSON of a review, which is posted and stored nowhere; empty for what is read."""
    metadata_only: bool = False
    """Whether nothing but the metadata of an object is asked for, so that no value of a Secret is sent."""


class AnswerKind(StrEnum):
    """Kinds of answers of an API server."""

    GIVEN = "given"
    ABSENT = "absent"
    """The object, the resource or the API group does not exist."""
    FORBIDDEN = "forbidden"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """The answer to one question."""

    kind: AnswerKind
    body: Json = field(default=None, hash=False)
    why: str = ""
    """Why there is no body, in the server's words or ours."""
    skew: timedelta | None = None
    """How far the server's clock is ahead of ours; None where it was not told."""

    @property
    def open(self) -> bool:
        """Whether the question remains open: nobody knows whether the object is there."""
        return self.kind in (AnswerKind.FORBIDDEN, AnswerKind.UNANSWERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccountName:
    """A service account, as API servers know it."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Write it as people do."""
        return f"{self.namespace}/{self.name}"

    @property
    def user(self) -> str:
        """Its name as a user."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that every service account of its namespace is in."""
        return "system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated"


Answers: TypeAlias = Mapping[ApiQuestion, ApiAnswer]
"""The answers of one API server, one for each question."""

VERSION = ApiQuestion(path="/version")
"""The question that is asked first: a server that does not answer it is asked nothing else."""

ACCOUNT = ApiQuestion(
    path="/apis/authentication.k8s.io/v1/selfsubjectreviews",
    body=json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}),
)
"""As whom the server knows the login."""

GROUPS = ApiQuestion(path=PATH)
"""The API groups that a server serves, with their versions."""


def access_question(
    verb: str,
    group: str,
    resource: str,
    namespace: str = "",
    *,
    name: str = "",
    account: ServiceAccountName | None = None,
) -> ApiQuestion:
    """Ask whether the login, or another account, may do something to a resource: in a namespace, or in all of them.

    With a `name` it is about this object alone.
    """
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name}
    spec: dict[str, Json] = {"resourceAttributes": {name: value for name, value in attributes.items() if value}}
    if account is not None:
        spec |= {"user": account.user, "groups": list(account.groups)}
    kind = "SelfSubjectAccessReview" if account is None else "SubjectAccessReview"
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    return ApiQuestion(path=f"{_REVIEWS}/{kind.lower()}s", body=json.dumps(review))


def object_question(
    version: str, kind: str, name: str, namespace: str = "", *, plural: str = "", metadata_only: bool = False
) -> ApiQuestion:
    """Ask for one object by its ``apiVersion``, kind and name."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    scope = f"namespaces/{namespace}/" if namespace else ""
    return ApiQuestion(path=f"{root}/{scope}{plural or plural_of(kind)}/{name}", metadata_only=metadata_only)


def served_versions(groups: ApiAnswer, group: str) -> frozenset[str]:
    """Return the versions of a group that a server serves, from its answer to GROUPS."""
    names = (name.rpartition("/") for name in read_api_versions(groups.body))
    return frozenset(version for named, _, version in names if named == group)
