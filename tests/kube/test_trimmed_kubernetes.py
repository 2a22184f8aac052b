"""The image holds no model and no call of the package kubernetes: nothing here may import one."""

from __future__ import annotations

import importlib
import pkgutil
import re
import runpy
import sys
from pathlib import Path

import pytest

from reconciler.adapters import kube

SCRIPT = Path(__file__).parents[2] / "requirements" / "trim_kubernetes.py"
TRIMMED = re.compile(r"kubernetes\.(aio\.)?client\.(api|models)\.\w+")


def test_the_adapter_imports_nothing_that_the_image_lacks() -> None:
    for module in pkgutil.iter_modules(kube.__path__, f"{kube.__name__}."):
        importlib.import_module(module.name)
    assert "kubernetes.aio.client.api_client" in sys.modules
    assert [name for name in sys.modules if TRIMMED.fullmatch(name)] == []


def test_trimming_keeps_the_packages_and_all_else(tmp_path: Path) -> None:
    kept, gone = [], []
    for client in ("client", "aio/client"):
        root = tmp_path / "kubernetes" / client
        kept += [root / "rest.py", root / "models" / "__init__.py", root / "api" / "__pycache__" / "__init__.x.pyc"]
        gone += [root / "models" / "v1_pod.py", root / "api" / "apps_api.py", root / "api" / "__pycache__" / "a.x.pyc"]
    for path in (*kept, *gone):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    main = runpy.run_path(str(SCRIPT))["main"]
    main(tmp_path)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == {*kept}
    with pytest.raises(SystemExit, match="kubernetes/client is not there"):
        main(tmp_path / "kubernetes")
