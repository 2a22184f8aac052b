"""Removes what Overspill does not import of the package kubernetes: the models and calls of each kind, 121 of 126 MB.

``python trim_kubernetes.py SITE_PACKAGES``, in an environment that is Overspill's own: other programs import them.
"""

import sys
from pathlib import Path


def main(site_packages: Path) -> None:
    """Remove the modules of these folders, and leave the folders themselves, which are imported."""
    client = site_packages / "kubernetes" / "client"
    if not client.is_dir():
        sys.exit(f"{client} is not there (try the site-packages of an environment with kubernetes)")
    for package in (client, site_packages / "kubernetes" / "aio" / "client"):
        for folder in ("api", "models"):
            for path in (package / folder).rglob("*.py*"):
                if path.is_file() and not path.name.startswith("__init__."):
                    path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
