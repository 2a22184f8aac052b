"""What a request that succeeds is answered with, in the one shape that all of them have."""

from __future__ import annotations

from http import HTTPStatus

from reconciler.model.workload import Json


def answer(data: Json, *, status: HTTPStatus = HTTPStatus.OK, message: str = "Success") -> dict[str, Json]:
    """Build EGS's envelope around `data`."""
    return {"statusCode": int(status), "status": "OK", "message": message, "data": data}
