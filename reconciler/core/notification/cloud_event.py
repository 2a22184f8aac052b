"""Notices as CloudEvents 1.0 in structured JSON, signed as Standard Webhooks 1.0 are.

* The id of a CloudEvent is the commit, and its source the fleet: a receiver that gets one twice knows it by both. The
  body is the same bytes each time.
* ``webhook-id`` is the same id, so that receivers of Standard Webhooks know it too. What is signed is id, time and body
  with dots between; ``webhook-signature`` is ``v1,`` and the base64 of its HMAC-SHA256. A secret of the form
  ``whsec_`` and base64 stands for the decoded bytes.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from urllib.parse import quote

from reconciler.model.events.event import Notice
from reconciler.text.targets import TextTarget, escape
from reconciler.text.timestamps import format_time

TYPE = "dev.overspill."
"""What types begin with; the kind follows, as in ``dev.overspill.placed``."""
_PREFIX = "whsec_"


def body_of(notice: Notice, fleet: str) -> bytes:
    """Write the event."""
    event = notice.event
    workload = event.workload
    data = {
        "severity": notice.importance,
        "line": escape(event.line, TextTarget.JSON),
        "reasons": tuple(escape(reason, TextTarget.JSON) for reason in event.reasons),
        "workspace": None if workload is None else workload.workspace,
        "workload": None if workload is None else workload.name,
        "workspaces": notice.workspaces or None,
        "clusters": event.clusters,
        "placement": notice.placement or None,
        "heldBy": event.held_by,
        "commit": event.commit,
        "sourceCommit": notice.source,
    }
    document = {
        "specversion": "1.0",
        "id": notice.id,
        "source": f"/overspill/{quote(fleet, safe='')}",
        "type": f"{TYPE}{event.kind.replace(' ', '_')}",
        "time": format_time(event.at),
        **({} if workload is None else {"subject": str(workload)}),
        "datacontenttype": "application/json",
        "data": {key: value for key, value in data.items() if value is not None},
    }
    return json.dumps(document, separators=(",", ":")).encode()


def headers_of(notice: Notice, body: bytes, secret: str, at: datetime) -> Mapping[str, str]:
    """Write the headers of a try to send an event at a moment. Raises ValueError for a secret that is none."""
    seconds = str(int(at.timestamp()))
    signed = b".".join((notice.id.encode(), seconds.encode(), body))
    signature = base64.b64encode(hmac.digest(_key(secret), signed, sha256)).decode()
    return {
        "Content-Type": "application/cloudevents+json; charset=utf-8",
        "webhook-id": notice.id,
        "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{signature}",
    }


def _key(secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("what follows whsec_ is not base64") from error
