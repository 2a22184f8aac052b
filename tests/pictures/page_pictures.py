"""Takes the pictures of the daemon's page for docs/pictures, of a fleet with a past.

Every view is among them, light and dark, on a phone, at a thousand clusters, and without scripts.

"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.builders.chromium import PHONE, WIDE, Chromium, chromium, missing
from tests.builders.daemon import OWNER, Daemon
from tests.pictures.page_fleet import FEW, picture_fleet

MANY = 1000
_SETTLED = 0.7
"""Seconds after which a page has drawn its curve and heard the stream."""


def take(browser: Chromium, running: Daemon, pictures: Path, views: Mapping[str, str], *, whole: bool = False) -> None:
    """Take a picture of each view, by the name of its file."""
    for name, path in views.items():
        browser.open(f"http://127.0.0.1:{running.port}{path}")
        time.sleep(_SETTLED)
        browser.picture(pictures / f"web-{name}.png", whole=whole)


def sign_in(browser: Chromium, running: Daemon) -> None:
    """Sign in as somebody who may see and do everything."""
    browser.driver.delete_all_cookies()
    browser.open(f"http://127.0.0.1:{running.port}/login")
    browser.find("#token").send_keys(OWNER)
    browser.find("#by-token button").click()
    time.sleep(_SETTLED)


def lab_report(directory: Path) -> None:
    """Have the lab write a report."""
    lab = [sys.executable, "-m", "reconciler", "lab", "run", "owners", "--no-optimum", "--html"]
    subprocess.run([*lab, str(directory / "owners.html")], check=True, stdout=subprocess.DEVNULL)


def take_all(pictures: Path) -> None:
    """Take all pictures of the page. Exits where no browser can be driven."""
    if lacking := missing():
        sys.exit(f"taking pictures of the page: {lacking}")
    with tempfile.TemporaryDirectory(prefix="overspill-page-") as name, chromium() as browser:
        directory = Path(name)
        reports = directory / "reports"
        reports.mkdir()
        lab_report(reports)
        few, many = directory / "few", directory / "many"
        few.mkdir()
        many.mkdir()
        browser.resize(WIDE)
        with picture_fleet(few, clusters=FEW, reports=reports) as running:
            browser.prefer("light")
            sign_in(browser, running)
            ledger = running.latest.read().decision.inputs.ledger
            placement = next(entry for entry in ledger.placements.values() if entry.workload.name == "vllm").name
            views = {
                "now": "/",
                "clusters": "/clusters",
                "time": "/time",
                "why": "/why?workload=llm/reranker",
                "commit": f"/why?commit={ledger.commit}",
                "money": "/money",
                "lab": "/lab",
                "revert": f"/do/revert?placement={placement}",
            }
            take(browser, running, pictures, views)
            browser.prefer("dark")
            take(browser, running, pictures, {"now-dark": "/", "time-dark": "/time"})
            browser.prefer("light")
            browser.allow_scripts(allowed=False)
            take(browser, running, pictures, {"time-without-script": "/time"})
            browser.allow_scripts(allowed=True)
            browser.resize(PHONE, scale=2)
            take(browser, running, pictures, {"now-phone": "/", "clusters-phone": "/clusters"})
            browser.resize(WIDE)
        with picture_fleet(many, clusters=MANY) as running:
            sign_in(browser, running)
            take(browser, running, pictures, {"clusters-1000": "/clusters"})


if __name__ == "__main__":
    take_all(Path(sys.argv[1]))
