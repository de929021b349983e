"""The parts of a dataset's page: at a glance, schema, source, history, how to get it, who reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browser.chromium import Visit
from support.browser.site import LOUD, PUBLIC, STATIONS, Site, small_workspace
from support.chains.small_datasets import dataset_id, make_dataset
from support.chains.workspaces import feed, root

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceKind
from odfpy.coordinator.storage.last_failure import remember
from odfpy.coordinator.workspace import Workspace
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import OdfError

ODD, NEW, OLD, FORKED = "com.example.odd", "com.example.new", "com.example.old", "com.example.forked"
HTML = "<img src=x onerror=alert(1)> & <script>alert(1)</script>"
KEYWORDS = [HTML, "עברית", "🦊", "k" * 255]
BLOCKS = 130


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = small_workspace(tmp_path_factory.mktemp("dataset") / "workspace")
    info = {"kind": "SetInfo", "description": HTML, "keywords": KEYWORDS}
    readme = {
        "path": "README.md",
        "content": f"# Hi\n\n{HTML}\n\n[link](javascript:alert(1)) ![picture](https://example.com/x.png)\n",
    }
    attachments = {"kind": "SetAttachments", "attachments": {"kind": "Embedded", "items": [readme]}}
    odd = root(ODD, "{kind: Append}") + "".join(
        f"    - {json.dumps(one, ensure_ascii=False)}\n" for one in (info, attachments)
    )
    forked = root(FORKED, "{kind: Append}")
    found.add([*load_snapshots(odd, "odd"), *load_snapshots(root(NEW), "new"), *load_snapshots(forked, "forked")])
    feed(found, FORKED, "1 a")
    found.branches.create(FORKED, ReferenceKind.TAG, "v1")
    for number in (2, 3):
        file = found.root / "draft.ndjson"
        file.write_text(f'{{"event_time":"2024-01-02T00:00:00Z","id":{number},"name":"staged"}}\n')
        list(found.ingest(FORKED, [file], branch="draft"))
    feed(found, FORKED, "4 d", day=4)
    feed(found, ODD, "1 a")
    staged = found.odf / "staged"
    make_dataset(DatasetLayout.local(staged), *(f"text {number}" for number in range(BLOCKS)), HTML)
    with found.storage.editing():
        found.storage.create(DatasetAlias.parse(OLD), dataset_id(1), staged)
    remember(found.storage.get(NEW), OdfError("The source does not answer"))
    return found


def test_the_overview_answers_at_a_glance(reader: Visit) -> None:
    page = reader.go(f"datasets/{STATIONS}")
    fresh, trust, lately = (page.locator(".card").nth(number) for number in range(3))
    expect(fresh).to_contain_text("Last rows just now")
    expect(fresh).to_contain_text("Complete up to 2024-01-03")
    expect(trust).to_contain_text("signed by this server's key, owner")
    expect(trust).to_contain_text("verified")
    expect(lately.get_by_title("SetDataSchema")).to_have_text("Schema set")
    expect(page.locator(".facts > div", has_text="Records")).to_contain_text("7")
    expect(page.locator(".markdown h3")).to_have_text("Stations")
    expect(page.locator(".markdown table")).to_contain_text("metre")
    expect(page.locator(".markdown b")).to_have_count(0)
    expect(page.get_by_role("link", name="CC0")).to_have_attribute("rel", "noreferrer")
    lately.get_by_role("link", name="4 records").click()
    expect(page.get_by_role("button", name="Changelog")).to_have_attribute("aria-pressed", "true")


def test_a_derivative_says_what_it_waits_for_and_leads_there(reader: Visit) -> None:
    page = reader.go(f"datasets/{LOUD}")
    expect(page.locator(".card").first).to_contain_text(f"The watermark waits for {STATIONS}")
    page.locator("main").get_by_role("link", name=STATIONS).first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(STATIONS)
    expect(page.get_by_role("heading", name="Datasets derived from it")).to_be_visible()


def test_a_dataset_without_rows_says_how_to_bring_some(admin: Visit) -> None:
    page = admin.go(f"datasets/{NEW}")
    expect(page.locator(".card").first).to_contain_text(f"odf pull {NEW}")
    problem = page.locator(".problem")
    expect(problem).to_contain_text("The source does not answer")
    expect(problem).to_contain_text(f"odf pull {NEW}")
    expect(page.locator(".card").nth(1)).to_contain_text(f"odf verify {NEW}")
    admin.go(f"datasets/{NEW}/-/schema")
    expect(page.get_by_text("No schema yet")).to_be_visible()
    admin.go(f"datasets/{NEW}/-/data?view=changelog")
    expect(page.get_by_role("status")).to_contain_text("No records")


def test_html_and_other_letters_are_only_text(reader: Visit) -> None:
    page = reader.go(f"datasets/{ODD}")
    expect(page.locator(".lead")).to_have_text(HTML)
    expect(page.locator(".markdown")).to_contain_text("<script>alert(1)</script>")
    assert page.locator("img, main script").count() == 0
    expect(page.locator(".markdown a")).to_have_count(1)
    expect(page.get_by_role("link", name="picture")).to_have_attribute("href", "https://example.com/x.png")
    reader.go(f"?search={ODD}")
    expect(page.get_by_text(HTML)).to_be_visible()


def test_older_blocks_are_there(reader: Visit) -> None:
    page = reader.go(f"datasets/{OLD}/-/history")
    expect(page.locator(".blocks > li")).to_have_count(100)
    expect(page.get_by_text("head", exact=True)).to_be_visible()
    expect(page.locator(".blocks > li").first).to_contain_text(HTML)
    expect(page.locator(".blocks > li").first).to_contain_text("not signed")
    page.get_by_role("button", name="Show older blocks").click()
    expect(page.locator(".blocks > li").last).to_contain_text("Seed")
    expect(page.get_by_role("button", name="Show older blocks")).to_have_count(0)


def test_branches_and_tags_stand_beside_the_blocks_of_the_head(reader: Visit, workspace: Workspace) -> None:
    page = reader.go(f"datasets/{FORKED}/-/history")
    blocks = page.locator(".blocks > li")
    last = workspace.storage.get(FORKED).state.sequence_number
    expect(blocks).to_have_count(last + 1 + 2)
    texts = blocks.all_inner_texts()
    lanes = [one.count() for one in blocks.locator(".lanes .lane.dot").all()]
    assert lanes == [1] * len(texts)
    assert "branch.draft" in texts[0]
    on_branch = [text for text in texts if "branch.draft" in text]
    assert len(on_branch) == 2
    [tagged] = [at for at, text in enumerate(texts) if "tag.v1" in text]
    assert blocks.nth(tagged).locator(".lane.join").count() == 1, "the branch continues the block of the tag"
    [head] = [at for at, text in enumerate(texts) if "head" in text.split()]
    assert blocks.nth(head).locator(".lane").first.get_attribute("class") == "lane tip dot"


def test_hashes_are_copied_as_a_whole(reader: Visit, workspace: Workspace) -> None:
    head = str(workspace.storage.get(STATIONS).state.head)
    reader.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = reader.go(f"datasets/{STATIONS}")
    fact = page.locator(".facts > div", has_text="Head")
    fact.get_by_role("button").click()
    expect(fact.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == head
    expect(fact.locator("code")).to_have_text(head)
    reader.go(f"datasets/{STATIONS}/-/history")
    page.locator(".blocks summary").first.click()
    expect(page.locator(".blocks details").first).to_contain_text(head)


def test_sources_and_queries(reader: Visit) -> None:
    page = reader.go(f"datasets/{STATIONS}/-/source")
    expect(page.get_by_role("heading", name="Push source default")).to_be_visible()
    expect(page.locator("main")).to_contain_text("primaryKey")
    page.get_by_text("Manifest", exact=True).click()
    expect(page.get_by_text("kind: DatasetSnapshot")).to_be_visible()
    reader.go(f"datasets/{LOUD}/-/source")
    expect(page.locator("main")).to_contain_text("upper(name)")
    expect(page.locator("main")).to_contain_text("datafusion")
    page.get_by_role("button", name="Analyze the query").click()
    expect(page.get_by_role("row").filter(has_text="output")).to_contain_text("row")
    expect(page.locator(".facts")).to_contain_text("Late rows")
    page.get_by_role("main").get_by_role("link", name=STATIONS).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(STATIONS)


def test_how_to_get_it_is_copied_and_runs(reader: Visit, served: Site, tmp_path: Path) -> None:
    reader.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = reader.go(f"datasets/{LOUD}/-/get")

    def copied(label: str) -> str:
        snippet = page.locator(".snippet", has_text=label)
        snippet.get_by_role("button", name="Copy").click()
        expect(snippet.get_by_role("button", name="Copied")).to_be_visible()
        return str(page.evaluate("navigator.clipboard.readText()"))

    def run(*command: str) -> str:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        known = {"ODF_TOKEN": served.tokens["reader"] or "", "XDG_CONFIG_HOME": str(tmp_path), "PATH": path}
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **known}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    names = [one["name"] for one in json.loads(run("bash", "-ec", copied("curl: the first rows")))["output"]["data"]]
    assert names == ["CHUR (GR)", None], "the current state"
    assert "CHUR" in run(sys.executable, "-c", f"{copied('Python: odfpy')}\nprint(frame.to_string())")
    cloned, _, followed = copied("odf: clone it").rpartition("\n")
    assert "verified" in run("bash", "-ec", cloned)
    assert followed == f"odf pull {LOUD} --follow"
    expect(page.get_by_text("It is in no share that you may read.")).to_be_visible()


@pytest.mark.parametrize("part", ["acess", "data/more"])
def test_a_part_that_is_not_there_says_so_and_leads_on(reader: Visit, part: str) -> None:
    page = reader.go(f"datasets/{STATIONS}/-/{part}")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    expect(page.get_by_role("link", name="All datasets", exact=True)).to_be_visible()
    page.locator(".empty").get_by_role("link", name=STATIONS).click()
    expect(page.get_by_text("Is it fresh?")).to_be_visible()


def test_who_may_read_it_tells_others_than_admins_their_own_right(reader: Visit, nobody: Visit) -> None:
    page = reader.go(f"datasets/{STATIONS}/-/access")
    expect(page.get_by_text("reader has an access token with the scope read")).to_be_visible()
    expect(page.get_by_text("Only administrators see")).to_be_visible()
    page = nobody.go(f"datasets/{PUBLIC}")
    page.get_by_role("link", name="Access").click()
    expect(page.get_by_text("Everyone can read it: it is public.")).to_be_visible()
    expect(page.locator("main").get_by_role("link", name="Sign in")).to_be_visible()
