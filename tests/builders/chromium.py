"""Chromium without a window, driven by its own driver: light and dark, wide and narrow, with scripts and without."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
AXE = "4.14.1"
TAB, ENTER, LEFT = "\ue004", "\ue007", "\ue012"
"""Keys, as WebDriver has them."""
WIDE, PHONE = (1360, 900), (390, 844)
"""Width and height of a window, in pixels."""


def missing() -> str:
    """Say what is missing for a browser to be driven; empty where all is there."""
    if not any(map(shutil.which, BROWSERS)) or shutil.which("chromedriver") is None:
        return "chromium and chromedriver are not on the PATH (apt-get install chromium chromium-driver)"
    try:
        import selenium  # noqa: F401, PLC0415 - an extra of its own
    except ImportError:
        return "selenium is not installed (pip install -e '.[browser]')"
    return ""


def axe_script() -> str | None:
    """Return the script of axe-core, fetched once from its npm package; None where npm cannot have it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "overspill-tests"
    script = cache / f"axe-core-{AXE}" / "package" / "axe.min.js"
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            return None
        script.parents[1].mkdir(parents=True, exist_ok=True)
        pack = [npm, "pack", "--silent", f"axe-core@{AXE}", "--pack-destination", str(cache)]
        if subprocess.run(pack, check=False, capture_output=True, cwd=cache).returncode:
            return None
        shutil.unpack_archive(cache / f"axe-core-{AXE}.tgz", script.parents[1])
    return script.read_text(encoding="utf-8")


class Chromium:
    """A browser."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self._command("Log.enable")

    def open(self, url: str) -> None:
        self.driver.get(url)

    def resize(self, size: tuple[int, int], *, scale: float = 1) -> None:
        """Show pages as on a screen of this size, with so many real pixels for each."""
        self._command(
            "Emulation.setDeviceMetricsOverride",
            width=size[0],
            height=size[1],
            deviceScaleFactor=scale,
            mobile=size[0] < 600,  # phones are narrow
        )

    def prefer(self, scheme: str) -> None:
        """Prefer light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._command("Emulation.setEmulatedMedia", features=features)

    def allow_scripts(self, *, allowed: bool) -> None:
        """Run the scripts of pages, or none."""
        self._command("Emulation.setScriptExecutionDisabled", value=not allowed)

    def picture(self, target: Path, *, whole: bool = False) -> None:
        """Take a picture of what is in sight, or of the whole page."""
        shot = self._command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        target.write_bytes(base64.b64decode(shot["data"]))

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def find_all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    @property
    def text(self) -> str:
        return str(self.find("body").text)

    def accessibility_tree(self) -> list[tuple[str, str]]:
        """Return what a screen reader is told: the role and the name of each element that has one."""
        nodes = self._command("Accessibility.getFullAXTree")["nodes"]
        pairs = ((node.get("role", {}).get("value", ""), node.get("name", {}).get("value", "")) for node in nodes)
        return [(role, name) for role, name in pairs if role not in ("none", "generic", "InlineTextBox", "")]

    def axe(self, script: str) -> list[str]:
        """Return what axe-core finds wrong with the page."""
        self.driver.execute_script(script)
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then((found) => done(JSON.stringify(found.violations)));"
        )
        return [
            f"{violation['id']}: {violation['help']}: {node['html'][:160]}: {node.get('failureSummary', '')[:300]}"
            for violation in json.loads(found)
            for node in violation["nodes"]
        ]

    def complaints(self) -> list[str]:
        """Return what the browser complains of, as of scripts that the policy stops."""
        return [
            str(entry["message"]) for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
        ]

    def _command(self, name: str, **fields: Any) -> Mapping[str, Any]:
        result: Mapping[str, Any] = self.driver.execute_cdp_cmd(name, fields)
        return result


@contextmanager
def chromium() -> Iterator[Chromium]:
    """Start a browser, and end it with the block."""
    from selenium import webdriver  # noqa: PLC0415 - an extra of its own
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415 - an extra of its own

    options = webdriver.ChromeOptions()
    options.binary_location = next(path for name in BROWSERS if (path := shutil.which(name)))
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(60)
    try:
        yield Chromium(driver)
    finally:
        driver.quit()
