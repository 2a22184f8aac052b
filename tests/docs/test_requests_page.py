"""docs/how-to/requests.md: its request is admitted without a complaint, and its states are the program's."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.model.ids import CommitId
from reconciler.model.request import Provisioning

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "how-to" / "requests.md").read_text()
LAYOUT = CHECKOUT / "repo-layout"


def test_the_request_it_shows_is_in_force_without_a_complaint() -> None:
    (asked,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    files = {path.relative_to(LAYOUT).as_posix(): path.read_bytes() for path in LAYOUT.rglob("*.yaml")}
    desired = assemble(
        CommitId(""), {path: parse_file(data) for path, data in {**files, "a.yaml": asked.encode()}.items()}
    )
    assert desired.problems == ()
    (request,) = desired.requests.values()
    assert (str(request.workload), request.placements) == ("llm/bookinfo", 1)


def test_every_state_is_told() -> None:
    table = PAGE.split("| status |")[1].split("\n\n")[0]
    assert re.findall(r"^\| (\w+) \|", table, re.MULTILINE) == [*Provisioning]
