"""The part of the package's metadata that depends on where the repository is published: its page and README's links."""

import os
import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

HOME = "OVERSPILL_PROJECT_URL"
"""The variable with the web page of the repository, for whoever publishes it: no host is the project's own."""


class PackageMetadata(MetadataHookInterface):
    """Adds the long description and, where `HOME` is set, the URLs."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dynamic fields of the project."""
        home = os.environ.get(HOME, "").rstrip("/")
        root = Path(self.root)
        convert = runpy.run_path(str(root / "requirements" / "readme_links.py"))["with_absolute_links"]
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": convert(text, home)}
        metadata["urls"] = (
            {
                "Repository": home,
                "Documentation": f"{home}/blob/HEAD/README.md",
                "Changelog": f"{home}/blob/HEAD/CHANGELOG.md",
                "Issues": f"{home}/issues",
            }
            if home
            else {}
        )
