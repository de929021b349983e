"""Pages of `odf serve` in Chromium: first paint of each, lists of many datasets over REST, a lineage of a thousand.

    python benchmarks/pages.py [--datasets 10000] [--runs 1000000] [--nodes 1000] [--rounds 5]

`odf serve` is a process of its own, over loopback. All datasets are copies of one, under names of their own. First
paint is what the browser says of itself (`first-contentful-paint`), with an empty cache; *shown* is when the page has
what it is for. The lineage is an answer that was made, as large as that of so many datasets; frames are counted while
the wheel turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser
from support import NARROW, ODF, REPOSITORY, print_machine, root, ten_rows
from support.runs import many_runs

from odfpy.archive import NewFile
from odfpy.archive.local import init_archive
from odfpy.archive.times import DAY, parse_time
from odfpy.chain.block import MetadataBlock
from odfpy.chain.encoding import hash_block, load_snapshots
from odfpy.chain.events import Seed, SetInfo
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.serving.callers.tokens import Scope, Tokens

sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
from browser.chromium import chromium, visiting
from browser.graphs import many_nodes

REAL = "com.example.real"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
GOAL = 0.5
PAGES = {
    "home": ("", "table.datasets tbody tr"),
    "overview": (f"datasets/{REAL}", ".card a"),
    "data": (f"datasets/{REAL}/-/data?view=changelog", ".rows td:not(:has(.skeleton))"),
    "schema": (f"datasets/{REAL}/-/schema", "table.list"),
    "source": (f"datasets/{REAL}/-/source", ".snippet"),
    "history": (f"datasets/{REAL}/-/history", ".blocks li"),
    "its runs": (f"datasets/{REAL}/-/runs", "main .empty, table.list"),
    "changes": (f"datasets/{REAL}/-/changes", "main table"),
    "verify": (f"datasets/{REAL}/-/verify", "main button"),
    "access": (f"datasets/{REAL}/-/access", "main h2"),
    "files": ("datasets/logs/-/files", "table.files td"),
    "get it": (f"datasets/{REAL}/-/get", ".snippet"),
    "row": (f"provenance?dataset={REAL}&offset=7", "table.list"),
    "compare": ("compare", "form"),
    "runs": ("runs", "table.list tbody tr"),
    "schedules": ("runs?view=schedules", "main .empty, table.list"),
    "lineage": ("lineage", ".node"),
    "query": ("query?query=" + quote(f'select * from "{REAL}"', safe=""), ".rows td:not(:has(.skeleton))"),
    "proof": ("proof", ".drop"),
    "admin": ("admin", "main h2"),
    "admin: tokens": ("admin/tokens", "table.list"),
    "admin: audit": ("admin/audit", "main table, main .empty"),
    "admin: system": ("admin/system", "main table"),
    "sign in": ("signin", "form"),
}
LISTS = {
    "first page": "datasets?limit=100",
    "by watermark, last page": "datasets?sort=-watermark&limit=100&offset={last}",
    "search": "datasets?search=many.00{last}",
    "100 favourites": "datasets?limit=100{ids}",
    "lineage": "lineage",
    "last runs": "platform/runs?limit=100",
    "failed runs": "platform/runs?limit=100&outcome=failed",
}
WHEEL = """async () => {
  const frame = document.querySelector('.picture .frame');
  const place = frame.getBoundingClientRect();
  const times = [];
  let before = await new Promise(requestAnimationFrame);
  for (let step = 0; step < 120; step += 1) {
    frame.dispatchEvent(new WheelEvent('wheel', {
      deltaY: step % 60 < 30 ? -40 : 40, clientX: place.left + 400, clientY: place.top + 200, cancelable: true,
    }));
    const now = await new Promise(requestAnimationFrame);
    times.push(now - before);
    before = now;
  }
  return times;
}"""


def many_datasets(workspace: Workspace, count: int) -> list[str]:
    """Make small root datasets, each with a name and an id of its own; gives their ids.

    Files are written without waiting for the disk, which would take most of the time.
    """
    now, found = Timestamp.now(), []
    for number in range(count):
        key = DatasetId(number.to_bytes(32, "big"))
        folder = workspace.storage.dataset_folder(key)
        for name in ("blocks", "data", "checkpoints", "refs", "info"):
            (folder / name).mkdir(parents=True)
        info = SetInfo(description=f"Dataset number {number} of many", keywords=("many", f"group {number % 20}"))
        head = None
        for sequence, event in enumerate((Seed(key, DatasetKind.ROOT), info)):
            block = MetadataBlock(system_time=now, prev_block_hash=head, sequence_number=sequence, event=event)
            hashed, data = hash_block(block)
            head = hashed.hash
            (folder / "blocks" / str(head)).write_bytes(data)
        (folder / "refs" / "head").write_text(str(head))
        (folder / "info" / "alias").write_text(f"com.example.many.{number:05}\n")
        found.append(str(key))
    return found


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The URL of a server in a process of its own."""
    process = subprocess.Popen(
        [*ODF, "serve", "--port", "0"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()


def lists(url: str, token: str, ids: list[str], rounds: int) -> None:
    """Seconds and bytes of lists over REST."""
    chosen = "".join(f"&id={one}" for one in ids[:: max(1, len(ids) // 100)][:100])
    for name, path in LISTS.items():
        times, length = [], 0
        for _ in range(rounds + 1):
            asked = urllib.request.Request(f"{url}/{path.format(last=max(0, len(ids) - 100), ids=chosen)}")
            asked.add_header("Authorization", f"Bearer {token}")
            started = time.perf_counter()
            with urllib.request.urlopen(asked) as answer:
                length = len(answer.read())
            times.append(time.perf_counter() - started)
        first, again = times[0], times[1:]
        print(
            f"list: {name:26} first {first * 1000:6.0f} ms   again median {statistics.median(again) * 1000:6.0f} ms"
            f"   most {max(again) * 1000:6.0f}   {length / 1000:8.0f} kB",
            flush=True,
        )


def paints(browser: Browser, url: str, token: str, rounds: int) -> None:
    """Seconds until the first paint, and until the page has what it is for; each time with an empty cache."""
    for name, (path, sign) in PAGES.items():
        painted, shown = [], []
        for _ in range(rounds):
            with visiting(browser, url, token) as visit:
                started = time.perf_counter()
                visit.page.goto(f"{url}/ui/{path}", wait_until="commit")
                visit.page.wait_for_selector(sign, state="attached")
                shown.append(time.perf_counter() - started)
                visit.page.wait_for_function(f"() => {PAINT}")
                painted.append(visit.page.evaluate(PAINT) / 1000)
        print(
            f"page: {name:10} first paint median {statistics.median(painted):5.2f} s   most {max(painted):5.2f}"
            f"   (to reach {GOAL:.2f})   shown median {statistics.median(shown):5.2f}   most {max(shown):5.2f}",
            flush=True,
        )


def lineage(browser: Browser, url: str, token: str, graph: dict[str, list[dict[str, Any]]]) -> None:
    """Seconds until the lineage can be used, and times of frames while the wheel turns."""
    text = json.dumps(graph)
    with visiting(browser, url, token) as visit:
        visit.page.route(f"{url}/lineage", lambda route: route.fulfill(content_type="application/json", body=text))
        started = time.perf_counter()
        visit.page.goto(f"{url}/ui/lineage", wait_until="commit")
        visit.page.wait_for_selector(".node", state="attached")
        visit.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        ready = time.perf_counter() - started
        count = f"{len(graph['nodes'])} datasets, {visit.page.locator('.node').count()} drawn"
        times = sorted(visit.page.evaluate(WHEEL))
        late = times[int(len(times) * 0.95)]
        print(
            f"lineage: {count}: usable after {ready:.2f} s; while it zooms, frames take"
            f" {statistics.median(times):.0f} ms (median), 95 of 100 at most {late:.0f} ms, the longest"
            f" {times[-1]:.0f} ms",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in {"datasets": 10_000, "runs": 1_000_000, "nodes": 1000, "rounds": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    print_machine("playwright", "fastapi")
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        print(f"Chromium {browser.version}")
        workspace = Workspace.init(Path(name) / "workspace")
        workspace.add(load_snapshots(root(REAL, "Append", NARROW), REAL))
        for day in range(30):
            file = Path(name) / "rows.ndjson"
            file.write_bytes(ten_rows(day * 10))
            list(workspace.ingest(REAL, [file]))
        start = parse_time("2024-03-01")
        new = [
            NewFile(file=file, what="rows", where=f"host-{one % 7}", start=start + one * DAY // 9) for one in range(300)
        ]
        init_archive(workspace, "logs").push_all(new)
        many_runs(workspace, asked.runs)
        ids = many_datasets(workspace, asked.datasets)
        token = Tokens(workspace.odf).new("bench", Scope.ADMIN)
        with served(workspace.root) as url:
            lists(url, token, ids, asked.rounds)
            paints(browser, url, token, asked.rounds)
            lineage(browser, url, token, many_nodes(asked.nodes))


if __name__ == "__main__":
    main()
