"""Make the screenshots of the pages in `docs/images`, of the example datasets as the server shows them here.

Hashes and times are those of the run: rows came just now, and watermarks are those of 2013, the year of the example
data. Chromium and the package playwright must be there (`.ci/packages`, the extra `dev`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from PIL import Image
from playwright.sync_api import sync_playwright

REPOSITORY = Path(__file__).resolve().parents[2]
PICTURES = REPOSITORY / "docs" / "images"
ODF = Path(sys.executable).with_name("odf")
MAX_BYTES = 150_000
SQL = (
    "select date_trunc('hour', event_time) as hour, count(*) as flights, sum(cast(cancelled as int)) as cancelled"
    ' from "org.nycflights.flights" group by 1 order by 1'
)
DARK, PHONE = {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 780}}
STORIES: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "pages-overview": ("datasets/org.nycflights.disruptions", ".chart canvas", {}),
    "pages-lineage": ("lineage?dataset=org.nycflights.disruptions", ".node.selected", DARK),
    "pages-query": (f"query?{urlencode({'query': SQL})}", ".rows td:not(:has(.skeleton))", {}),
    "pages-files": ("datasets/logs/-/files?what=nginx", "table.files td", {}),
    "pages-home": ("", "table.datasets tbody tr", {**DARK, **PHONE}),
}


def main() -> None:
    """Pull the example datasets into a workspace that is thrown away, and take pictures of its pages."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "example"
        workspace.mkdir()
        os.environ["XDG_CONFIG_HOME"] = f"{folder}/config"
        shutil.copytree(REPOSITORY / "snapshots" / "data", workspace / "data")
        try:
            for arguments in (
                ["init"],
                ["add", "-r", str(REPOSITORY / "snapshots")],
                ["pull", "--all"],
                ["verify", "-r", "org.nycflights.disruptions"],
            ):
                subprocess.run([ODF, *arguments], cwd=workspace, check=True, capture_output=True)
            fill_archive(workspace)
            with served(workspace) as (url, token):
                take(url, token)
        finally:
            subprocess.run([ODF, "engine", "stop"], cwd=workspace, check=False, capture_output=True)


def fill_archive(workspace: Path) -> None:
    """Make an archive with the logs of three servers for some weeks, and a few other files."""
    from odfpy.archive import NewFile
    from odfpy.archive.local import init_archive
    from odfpy.archive.times import parse_time
    from odfpy.coordinator.workspace import Workspace

    files = []
    for number in range(150):
        day, host = number // 3, f"web{number % 3 + 1}"
        if number % 7 == 0 and day % 2:
            continue
        file = workspace / f"file-{number}"
        file.write_text(f"{host} GET /page/{number} 200\n" * (100 + number * 37 % 400))
        start = parse_time("2024-02-10") + day * 86_400_000
        what = "report" if number % 10 == 0 else "nginx"
        path = f"/var/log/{what}/{host}-{day + 1:02}.log"
        files.append(NewFile(file=file, what=what, where=host, start=start, end=start + 86_399_000, path=path))
    init_archive(Workspace.open(workspace), "logs").push_all(files)


@contextmanager
def served(workspace: Path) -> Iterator[tuple[str, str]]:
    """The URL of a server of a workspace, and a token for it."""
    token = subprocess.run(
        [ODF, "token", "new", "ann", "-q"], cwd=workspace, check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    process = subprocess.Popen(
        [ODF, "serve", "--port", "0"], cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1], token
    finally:
        process.terminate()
        process.wait()


def take(url: str, token: str) -> None:
    """Take a picture of each page, as small as a picture of few colours can be."""
    cookie = {"name": f"odf_session_{urlsplit(url).port}", "value": token, "url": url}
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for name, (path, sign, options) in STORIES.items():
            context = browser.new_context(**{"viewport": {"width": 1200, "height": 760}, "locale": "en", **options})
            context.add_cookies([cookie])  # type: ignore[list-item]
            page = context.new_page()
            page.goto(f"{url}/ui/{path}")
            page.wait_for_selector(sign, state="attached")
            page.wait_for_load_state("load")
            if name == "pages-query":
                page.get_by_role("button", name="Chart").click()
                page.wait_for_selector(".chart canvas")
            page.evaluate("document.activeElement.blur()")
            picture = PICTURES / f"{name}.png"
            page.screenshot(path=picture, animations="disabled", caret="hide")
            with Image.open(picture) as taken:
                taken.quantize(128).save(picture, optimize=True)
            context.close()
            if picture.stat().st_size > MAX_BYTES:
                sys.exit(f"{picture} is larger than {MAX_BYTES} bytes")
        browser.close()


if __name__ == "__main__":
    main()
