"""Takes pictures of pages in a real browser for docs/pictures: the site's front page, and the page that the lab writes.

Fonts differ from machine to machine, so that no test compares these pictures.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.loopback import LoopbackServer, files_of

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SITE_SIZE, LAB_SIZE = (1280, 900), (1100, 1000)
"""Width and height of a window, in pixels."""
SETTLED = 5000
"""Milliseconds of the page's own time after which its scripts have run."""


@contextmanager
def serving(directory: Path) -> Iterator[str]:
    """Serve a directory on this machine; search and relative links need a server."""
    with LoopbackServer(files_of(directory)) as server:
        yield server.url


def shoot(browser: str, url: str, target: Path, size: tuple[int, int]) -> None:
    """Take a picture of a page."""
    with tempfile.TemporaryDirectory(prefix="overspill-browser-") as profile:
        done = subprocess.run(
            [
                browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}",
                f"--virtual-time-budget={SETTLED}", f"--screenshot={target}", url,
            ],
            check=False, capture_output=True, text=True,
        )  # fmt: skip # a command line
    if done.returncode or not target.exists():
        sys.exit(f"{browser} took no picture of {url}:\n{done.stderr}")


def main(pictures: Path) -> None:
    """Take all pictures; needs .site, which `make site` builds."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        sys.exit(f"a browser is needed: none of {', '.join(BROWSERS)} is on the PATH")
    with serving(ROOT / ".site") as url:
        shoot(browser, f"{url}/index.html", pictures / "site.png", SITE_SIZE)
    with tempfile.TemporaryDirectory(prefix="overspill-lab-") as directory:
        page = Path(directory) / "lab.html"
        lab = [sys.executable, "-m", "reconciler", "lab", "run", "owners", "--no-optimum", "--html", str(page)]
        subprocess.run(lab, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        shoot(browser, page.as_uri(), pictures / "lab.png", LAB_SIZE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
