"""A strategic merge patch makes of a Pod what the real kubectl makes of it, to the order of every list."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reconciler.core.pods.strategic_merge import Unmergeable, merge
from tests.builders.random_patches import pair
from tests.e2e.components import Missing, find

PAIRS = 300


def by_kubectl(kubectl: Path, folder: Path, seed: int) -> Any:
    """Patch a pod of a seed with kubectl; None where it cannot."""
    pod, patch = pair(seed)
    file, said = folder / f"{seed}.json", folder / f"{seed}.patch.json"
    file.write_text(json.dumps(pod))
    said.write_text(json.dumps(patch))
    options = ["--local", "--type=strategic", f"--filename={file}", f"--patch-file={said}", "--output=json"]
    done = subprocess.run([kubectl, "patch", *options], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def by_ours(seed: int) -> Any:
    """Patch a pod of a seed; None where it cannot be."""
    try:
        return merge(*pair(seed))
    except Unmergeable:
        return None


def test_a_pod_is_patched_as_kubectl_patches_it(tmp_path: Path) -> None:
    kubectl = find("kubectl")
    if isinstance(kubectl, Missing):
        pytest.skip(f"kubectl: {kubectl.reason}")
    with ThreadPoolExecutor(2) as two:
        theirs = list(two.map(lambda seed: by_kubectl(kubectl.path, tmp_path, seed), range(PAIRS)))
    ours = [by_ours(seed) for seed in range(PAIRS)]
    # Text, so that 1, 1.0 and true are three things.
    differ = [
        seed
        for seed, (left, right) in enumerate(zip(ours, theirs, strict=True))
        if json.dumps(left, sort_keys=True) != json.dumps(right, sort_keys=True)
    ]
    assert differ == []
    applied = sum(made is not None for made in theirs)
    assert PAIRS * 0.8 < applied < PAIRS, "both what can be applied and what cannot is among them"
