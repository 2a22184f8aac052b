"""docs/how-to/spread.md on WorkloadSpread files: its sample is in force."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.model.ids import CommitId, WorkloadId

CHECKOUT = Path(__file__).parents[2]
LAYOUT = CHECKOUT / "repo-layout"
SECTION = (
    (CHECKOUT / "docs" / "how-to" / "spread.md")
    .read_text()
    .partition("\n## WorkloadSpread files\n")[2]
    .partition("\n## ")[0]
)


def test_the_spread_it_shows_is_in_force_without_a_complaint() -> None:
    (sample,) = re.findall(r"^```yaml\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    files = {
        path.relative_to(LAYOUT).as_posix(): path.read_bytes()
        for path in LAYOUT.rglob("*.yaml")
        if path.parent.name != "policies"
    }
    others = (LAYOUT / "policies" / "serving.yaml").read_text().replace("  - vllm\n", "")
    parsed = {**files, "policies/a.yaml": sample.encode(), "policies/b.yaml": others.encode()}
    desired = assemble(CommitId(""), {path: parse_file(data) for path, data in parsed.items()})
    assert desired.problems == ()
    spread = desired.policies[WorkloadId("llm", "vllm")].spread
    assert spread is not None
    assert [subset.name for subset in spread.subsets] == ["close-by", "spot"]
    assert desired.policies[WorkloadId("llm", "vllm-helm")].spread is None
