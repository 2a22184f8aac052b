"""The bodies of EGS's REST interface for placements, read into drafts.

Problems name the field as it stands in the body: ``helmConfigs[0].chart``, ``steps[1].name``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import ValidationError

from reconciler.core.schema import Strict, complaints
from reconciler.core.schema.egs.placement import CreateBody, UpdateBody
from reconciler.core.schema.egs.request import RequestDraft, created, updated
from reconciler.errors import Severity
from reconciler.model.workload import Json
from reconciler.text.findings import Finding

_Body = TypeVar("_Body", bound=Strict)


def read_create(body: Json) -> RequestDraft | tuple[Finding, ...]:
    """Read the body of a POST, or say everything that is wrong with it."""
    file = _fitting(body, CreateBody)
    return file if isinstance(file, tuple) else _sound(*created(file, _flat(body)))


def read_update(body: Json) -> RequestDraft | tuple[Finding, ...]:
    """Read the body of a PUT, or say what is wrong with it alone; `said` of the draft are the fields that it gives.

    ``name`` and ``workspaceName`` are among them, so that a change of either can be refused; ``namespace`` is not,
    which is passed over (R20).
    """
    file = _fitting(body, UpdateBody)
    return file if isinstance(file, tuple) else _sound(*updated(file, _flat(body)))


def _fitting(body: Json, model: type[_Body]) -> _Body | tuple[Finding, ...]:
    """Hold a body to its schema."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        return complaints(error, model)


def _sound(draft: RequestDraft, found: tuple[Finding, ...]) -> RequestDraft | tuple[Finding, ...]:
    """Return the draft, or the errors where there are any."""
    wrong = tuple(finding for finding in found if finding.severity is Severity.ERROR)
    return wrong or draft


def _flat(body: Json) -> frozenset[int]:
    """Tell which manifests stand in the flattened form (R14)."""
    entries = body.get("manifestResources")
    return frozenset(
        index
        for index, entry in enumerate(entries if isinstance(entries, list) else ())
        if isinstance(entry, Mapping) and "manifest" not in entry
    )
