"""Why an order is not carried out, as the answer that its caller gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from reconciler.core.ledger.request_record import write_request
from reconciler.errors import InvalidInput, Problem
from reconciler.model.ids import WorkloadId
from reconciler.model.request import Answer, Denial, Provisioning, RequestRecord
from reconciler.text.findings import Finding
from reconciler.text.wording import join_names

PLACE = "request"
"""Where the problems of a body are, as there is no file."""


def written(record: RequestRecord) -> bytes | Answer:
    """Write a record, or say why it cannot be written: an order that is answered has to be carried out."""
    try:
        return write_request(record)
    except (InvalidInput, UnicodeError) as error:
        return invalid(str(error), workload=record.workload)


def invalid(message: str, hint: str = "", workload: WorkloadId | None = None) -> Answer:
    """Deny an order that makes no sense."""
    problem = Problem(path=PLACE, message=message, hint=hint)
    text = f"{message} ({hint})" if hint else message
    return Answer(denial=Denial.INVALID, message=text, workload=workload, problems=(problem,))


def refused(findings: Iterable[Finding], workload: WorkloadId | None = None) -> Answer:
    """Deny an order of which the body is wrong."""
    problems = tuple(finding.problem(path=PLACE, line=0) for finding in findings)
    message = "; ".join(str(replace(problem, path="")) for problem in problems)
    return Answer(denial=Denial.INVALID, message=message, workload=workload, problems=problems)


def immutable(fields: Sequence[str], why: str, workload: WorkloadId) -> Answer:
    """Deny a change of fields that are fixed in the state that a placement is in."""
    names = join_names(fields)
    problems = tuple(Problem(path=PLACE, field=name, message=f"cannot change: {why}") for name in fields)
    message = f"{names} cannot change: {why}"
    return Answer(denial=Denial.INVALID_UPDATE, message=message, workload=workload, problems=problems)


def restricted(status: Provisioning, workload: WorkloadId) -> Answer:
    """Deny an end as EGS does."""
    message = f"{workload} is {status}, and what has been provisioned is not deleted here"
    return Answer(denial=Denial.DELETION_RESTRICTED, message=message, workload=workload)
