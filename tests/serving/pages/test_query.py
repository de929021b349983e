"""The query page: writing, running, cancelling, and what makes an answer one that others can check."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect
from support.browser.accessibility import check_for_everybody
from support.browser.chromium import Visit
from support.browser.site import LOUD, PUBLIC, STATIONS, Site, small_workspace
from support.chains.workspaces import feed, root
from support.servers.serving import ask

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.revocations import KeyRevocation, Reason
from odfpy.codec.tree import to_tree
from odfpy.coordinator.storage.revoked_keys import RevokedKeysFile
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import KeyPair
from odfpy.query.wire.commitments import Commitment

MANY = "com.example.many"
ROWS = 1234
NEVER_ENDING = (
    "select count(*) from generate_series(1, 100000000) a, generate_series(1, 100000000) b where a.value = -b.value"
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = small_workspace(tmp_path_factory.mktemp("query") / "workspace")
    found.add(load_snapshots(root(MANY, "{kind: Append}"), "many"))
    feed(found, MANY, *(f"{number} n{number}" for number in range(ROWS)))
    return found


def asked(visit: Visit, query: str) -> Page:
    """The query page with a query that has been run."""
    return visit.go(f"query?{urlencode({'query': query})}")


def editor(page: Page, text: str) -> None:
    """Write a query, as the keyboard does."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def shown(page: Page) -> list[list[str]]:
    expect(page.locator(".rows tbody td:not(:has(.skeleton))").first).to_be_attached()
    rows = page.locator(".rows tbody tr:not(.space)").all()
    return [row.locator("td").all_inner_texts() for row in rows]


def download(page: Page, button: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button).click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def test_a_query_is_written_and_run_with_the_keyboard_alone(reader: Visit) -> None:
    page = reader.go("query")
    expect(page.locator(".cm-content")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("select 1 + 1 as two")
    page.keyboard.press("Control+Enter")
    assert shown(page) == [["2"]]
    page.reload()
    expect(page.locator(".cm-content")).to_contain_text("select 1 + 1 as two")


def test_names_and_columns_are_completed(reader: Visit) -> None:
    page = reader.go("query")
    editor(page, "select * from com.example.st")
    option = page.get_by_role("option", name=STATIONS)
    option.click()
    expect(page.locator(".cm-content")).to_have_text(f'select * from "{STATIONS}"')
    page.keyboard.type(" where na")
    page.get_by_role("option", name="name", exact=True).click()
    page.keyboard.type(" = 'Bern'")
    page.get_by_role("button", name="Run").click()
    assert shown(page)[0][-1] == "Bern"


def test_a_name_in_quotes_gets_no_more_of_them(reader: Visit) -> None:
    page = reader.go("query")
    editor(page, 'select * from "com.example.st')
    page.get_by_role("option", name=STATIONS).click()
    expect(page.locator(".cm-content")).to_have_text(f'select * from "{STATIONS}"')


def test_names_stay_while_one_goes_on_typing(reader: Visit) -> None:
    """More letters need no other answer: a click that came while one was awaited would do nothing."""
    page = reader.go("query")
    editor(page, 'select * from "com.ex')
    expect(page.get_by_role("option", name=LOUD)).to_be_visible()
    page.route("**/datasets?*", lambda route: None)  # no answer, ever
    page.keyboard.type("ample.st", delay=150)
    expect(page.get_by_role("option", name=LOUD)).to_have_count(0)
    page.get_by_role("option", name=STATIONS).click()
    expect(page.locator(".cm-content")).to_have_text(f'select * from "{STATIONS}"')


def test_an_error_stands_under_its_place(reader: Visit) -> None:
    reader.expect("status of 400")
    page = asked(reader, "select 1 as one,\nfro m x")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator(".cm-lintRange-error")).to_have_count(1)
    page.locator(".cm-lintRange-error").hover()
    expect(page.locator(".cm-tooltip-lint")).to_be_visible()
    editor(page, "select 1 as one")
    page.keyboard.press("Control+Enter")
    assert shown(page) == [["1"]]
    expect(page.locator(".cm-lintRange-error")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_an_unknown_dataset_is_named_with_a_suggestion(reader: Visit) -> None:
    reader.expect("status of 40[04]")
    page = asked(reader, 'select * from "com.example.station"')
    expect(page.get_by_role("alert")).to_contain_text(f"Did you mean {STATIONS}?")
    editor(page, "select * from odf_current('loud')")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text(f"Did you mean {LOUD}?")


def test_nobody_is_told_names_that_they_may_not_read(nobody: Visit) -> None:
    nobody.expect("status of 40[04]")
    page = asked(nobody, 'select * from "com.example.station"')
    expect(page.get_by_role("alert")).to_contain_text("No dataset 'com.example.station'")
    expect(page.get_by_role("alert")).not_to_contain_text(STATIONS)
    expect(page.get_by_role("listitem").filter(has_text="com.example.")).to_contain_text([PUBLIC] * 3)


def test_the_first_queries_take_one_click(reader: Visit) -> None:
    page = reader.go("query")
    rows, number = (f"select {what} from odf_current('{LOUD}')" for what in ("*", "count(*) as n"))
    expect(page.get_by_role("listitem").get_by_role("button")).to_have_text(
        [f"{rows} limit 100", number, LOUD, MANY, PUBLIC, STATIONS]
    )
    page.get_by_role("button", name=number).click()
    assert shown(page) == [["2"]]
    expect(page.locator(".cm-content")).to_have_text(f"select count(*) as n from odf_current('{LOUD}')")
    expect(page.get_by_role("button", name=STATIONS)).to_have_count(0)


def test_a_click_on_a_name_writes_it_where_the_cursor_is(reader: Visit) -> None:
    page = reader.go("query")
    page.get_by_role("button", name=STATIONS).click()
    expect(page.locator(".cm-content")).to_have_text(f"select * from odf_current('{STATIONS}')")
    editor(page, "select count(*) as n from")
    page.get_by_role("button", name=STATIONS).click()
    page.keyboard.type(" where op = 0")
    page.keyboard.press("Control+Enter")
    assert shown(page) == [["4"]]


def test_explain_shows_the_plan(reader: Visit) -> None:
    page = reader.go("query")
    editor(page, f'select * from "{STATIONS}"')
    page.get_by_role("button", name="Explain").click()
    text = "".join(cell for row in shown(page) for cell in row)
    assert STATIONS in text or "scan" in text.lower(), text


def test_a_query_that_never_ends_is_cancelled(reader: Visit) -> None:
    page = reader.go("query")
    editor(page, NEVER_ENDING)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("timer")).to_be_visible()
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/query")):
        page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Run")).to_be_visible()
    editor(page, "select 3 as three")
    page.keyboard.press("Control+Enter")
    assert shown(page) == [["3"]]


def test_times_have_the_digits_that_say_something(reader: Visit) -> None:
    whole, zeros = "2024-01-02T03:04:05.123456789", "2024-01-02T03:04:05.500000000"
    page = asked(
        reader,
        f"select arrow_cast('{whole}', 'Timestamp(Nanosecond, None)') as a, arrow_cast('{zeros}', 'Timestamp(Nanosecond, None)') as b",
    )
    assert shown(page) == [["2024-01-02T03:04:05.123", "2024-01-02T03:04:05.5"]]
    expect(page.locator(".rows td span").first).to_have_attribute("title", whole)


def test_results_come_in_pieces(reader: Visit) -> None:
    page = asked(reader, f'select id, name from "{MANY}" order by id')
    expect(page.get_by_role("status")).to_contain_text("of 1,234")
    page.get_by_role("region", name="Answer").evaluate("(frame) => { frame.scrollTop = frame.scrollHeight }")
    row = page.locator(f"tr[aria-rowindex='{ROWS + 1}']")
    expect(row).to_contain_text(f"n{ROWS - 1}")


def test_a_link_gives_the_same_answer_when_there_is_more(reader: Visit, workspace: Workspace) -> None:
    page = asked(reader, f'select count(*) as n from "{PUBLIC}"')
    assert shown(page) == [["5"]]
    page.get_by_role("button", name="Copy a link to this answer").click()
    page.wait_for_url("**query=**datasets=**")
    link = page.url
    assert workspace.storage.get(PUBLIC).state.head is not None
    feed(workspace, PUBLIC, "99 later", day=9)
    page.goto(link)
    expect(page.get_by_text("The link names the blocks")).to_be_visible()
    assert shown(page) == [["5"]]
    editor(page, f'select count(*) as m from "{PUBLIC}"')
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("columnheader", name="m", exact=True)).to_be_visible()
    assert shown(page) == [["6"]]


def test_a_link_is_copied(reader: Visit) -> None:
    reader.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = asked(reader, f'select max(id) as m from "{MANY}"')
    shown(page)
    page.get_by_role("button", name="Copy a link to this answer").dblclick()
    expect(page.get_by_role("button", name="Link copied; the address bar has it, too")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    assert "datasets=" in page.url


def test_all_rows_are_exported(reader: Visit, tmp_path: Path) -> None:
    page = asked(reader, f'select id, name || \',"\' as name, 9007199254740993 as exact from "{MANY}" order by id')
    expect(page.get_by_role("status")).to_contain_text("of 1,234")
    with download(page, "Download as CSV", tmp_path).open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["id", "name", "exact"]
    assert rows[1:] == [[str(number), f'n{number},"', "9007199254740993"] for number in range(ROWS)]


def test_numbers_are_drawn(reader: Visit) -> None:
    page = asked(reader, f'select name, id from "{STATIONS}" where op = 0 and name is not null')
    page.get_by_role("button", name="Chart").click()
    expect(page.locator(".measures tbody tr")).to_have_count(3)
    page = asked(reader, f'select id, id * 2 as twice from "{MANY}" order by id')
    expect(page.get_by_role("status")).to_contain_text("of 1,234")
    page.get_by_role("button", name="Chart").click()
    expect(page.get_by_role("img", name="twice over id")).to_be_visible()


def test_a_proof_is_downloaded_and_found_true(reader: Visit, tmp_path: Path) -> None:
    exact = 9_007_199_254_740_993  # no number of JavaScript
    page = asked(reader, f'select upper(name) as loud, {exact} as exact from "{STATIONS}" order by "offset"')
    shown(page)
    proof = download(page, "Download with proof", tmp_path)
    reader.go("proof")
    page.locator("input[type=file]").set_input_files(proof)
    expect(page.get_by_role("status")).to_contain_text("True")
    expect(page.locator("main")).to_contain_text("upper(name)")
    expect(page.locator(".facts")).to_contain_text("Signed by")
    expect(page.locator(".facts")).to_contain_text("this server's key")
    rows = page.get_by_role("region", name="First rows of the answer").locator("tbody tr")
    expect(rows).to_have_count(7)
    expect(rows.first).to_contain_text(f"BERN{exact}")
    expect(page.get_by_role("main").get_by_role("link", name=STATIONS)).to_be_visible()
    check_for_everybody(page)


def changed(proof: Any, part: str, key: str, value: Any, by: KeyPair | None = None) -> Any:
    """A proof in which something is another, and which somebody has signed as it is then."""
    document = {**proof, part: {**proof[part], key: value}}
    if by is None:
        return document
    commitment = Commitment.to(document["input"], document["output"])
    return {**document, "commitment": to_tree(commitment), "proof": to_tree(commitment.signed_by(by))}


def test_a_proof_that_does_not_hold_says_in_plain_words_what_is_false(
    reader: Visit, nobody: Visit, served: Site, tmp_path: Path
) -> None:
    question = {"query": f'select max(id) as m from "{STATIONS}"', "include": ["Proof"], "dataFormat": "JsonAoA"}
    body = json.dumps(question).encode()
    json_ = "application/json"
    proof = ask(f"{served.url}/query", method="POST", token=served.tokens["reader"], body=body, content_type=json_).json
    other, ended, none = KeyPair(b"\x02" * 32), KeyPair(b"\x04" * 32), f"f1620{'0' * 64}"
    RevokedKeysFile().add(learnt=[KeyRevocation.made_by(ended, ended.actor, Reason.RETIRED, Timestamp.now())])
    [read] = proof["input"]["datasets"]
    reader.expect("status of 400")
    page = reader.go("proof")
    for document, verdict, facts in (
        (changed(proof, "output", "data", [[9]]), "Not valid: the rows are not those that were signed", "Signed by"),
        (
            changed(proof, "proof", "verificationMethod", str(other.actor)),
            "Not valid: the signature is not valid",
            "Claims to be signed by",
        ),
        (
            changed(proof, "output", "data", [[9]], other),
            "Not valid: the query gives other rows",
            "unknown to this server",
        ),
        (
            changed(proof, "output", "data", [[9]], ended),
            "Not valid: the key that signed it is no longer valid",
            "Signed",
        ),
        (
            changed(proof, "input", "datasets", [{**read, "blockHash": none}], other),
            "Cannot be checked here: a block is missing",
            "Signed by",
        ),
    ):
        drop(page, written(tmp_path, document))
        expect(page.get_by_role("status")).to_contain_text(verdict)
        expect(page.locator(".facts")).to_contain_text(facts)
    drop(page, written(tmp_path, {}))
    expect(page.get_by_role("alert")).to_contain_text("not an answer with a proof")
    nobody.expect("status of 400")
    page = nobody.go("proof")
    drop(page, written(tmp_path, proof))
    expect(page.get_by_role("status")).to_contain_text(
        "Cannot be checked here: a dataset is missing, or you may not read it"
    )
    expect(page.get_by_role("status").get_by_role("link", name="Sign in")).to_be_visible()
    expect(page.locator("main")).to_contain_text(f"{STATIONS} (not on this server, or not readable for you)")
    check_for_everybody(page)


def written(folder: Path, document: Any) -> Path:
    file = folder / "answer.proof.json"
    file.write_text(json.dumps(document))
    return file


def drop(page: Page, file: Path) -> None:
    """Drop a file as one that is dragged from a folder."""
    data = page.evaluate_handle(
        "([text, name]) => { const data = new DataTransfer(); data.items.add(new File([text], name)); return data }",
        [file.read_text(), file.name],
    )
    page.dispatch_event(".drop", "drop", {"dataTransfer": data})


def test_strangers_query_what_is_public(nobody: Visit) -> None:
    nobody.expect("status of 40[0-9]")
    page = asked(nobody, f'select count(*) as n from "{PUBLIC}"')
    assert int(shown(page)[0][0]) >= 5
    editor(page, f'select count(*) as n from "{LOUD}"')
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text(LOUD)


def test_what_counts_superseded_rows_says_so_and_reads_current_states_instead(reader: Visit) -> None:
    page = asked(reader, f'select count(*) as n from "{STATIONS}"')
    note = page.get_by_role("note")
    expect(note).to_contain_text(
        f"{STATIONS} is read as a changelog: it includes 3 rows that retract or correct others"
    )
    expect(page.locator(".rows tbody td.number")).to_have_text("7")
    note.get_by_role("button", name="Read current states instead").click()
    expect(page.locator(".cm-content")).to_have_text(f"select count(*) as n from odf_current('{STATIONS}')")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".rows tbody td.number")).to_have_text("3")
    expect(note).to_have_count(0)
    assert "query=" not in page.url, "the link was of another answer"
