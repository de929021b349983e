"""Pages of archives: files found by what, where and when; a file with its preview, history and proof."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.archive.browsed import HTML, LONG, MANY_LINES, PICTURE_SIZE, browsed_archive
from support.browser.accessibility import check_for_everybody
from support.browser.chromium import Visit
from support.browser.site import STATIONS, Site, site, small_workspace

from odfpy.archive.archive import NewFile
from odfpy.archive.local import init_archive
from odfpy.archive.record import FileRecord
from odfpy.archive.times import DAY, parse_time
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.visibility import Visibility, set_visibility

FILES = "datasets/logs/-/files"
SENSORS = 130
FIRST = parse_time("2022-12-31")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, FileRecord]:
    return {}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, records: dict[str, FileRecord]) -> Workspace:
    folder = tmp_path_factory.mktemp("files")
    found = small_workspace(folder / "workspace")
    archive = init_archive(found, "logs")
    (folder / "files").mkdir()
    records.update(browsed_archive(archive, folder / "files"))
    new = []
    for number in range(SENSORS):
        file = folder / "files" / f"sensor-{number}.txt"
        file.write_text(f"{number}\n")
        start = FIRST + number * DAY // 2
        new.append(NewFile(file=file, what="sensor", where=f"roof-{number % 9}", start=start, path=str(file)))
    archive.push_all(new)
    init_archive(found, "empty")
    init_archive(found, "open")
    set_visibility(found.storage.get("open").folder, Visibility.PUBLIC)
    return found


@pytest.fixture(scope="module")
def served(workspace: Workspace) -> Iterator[Site]:
    with site(workspace) as found:
        yield found


@pytest.fixture
def look(reader: Visit, records: Mapping[str, FileRecord]) -> Callable[[str], Page]:
    """Opens the page of a file."""

    def open_page(name: str) -> Page:
        page = reader.go(f"{FILES}/{records[name].id}")
        expect(page.get_by_role("heading", name="Proof")).to_be_visible()
        return page

    return open_page


def rows(page: Page) -> list[str]:
    """The names of the files that are listed, once the list is that of the question."""
    table = page.locator('[aria-busy="false"]').get_by_role("region", name="Files", exact=True)
    expect(table).to_be_visible()
    return table.get_by_role("rowheader").all_inner_texts()


# --- Browsing ---


def test_an_archive_tells_its_files_at_its_overview(reader: Visit) -> None:
    page = reader.go("datasets/logs")
    facts = page.locator(".facts").first
    expect(facts.locator("div", has_text="Files").first).to_contain_text("152")
    expect(facts.locator("div", has_text="Bytes of files")).to_contain_text("MB")
    facts.get_by_role("link", name="152").click()
    expect(page.get_by_role("heading", name="Contents")).to_be_visible()


def test_other_datasets_have_no_such_tab(reader: Visit) -> None:
    page = reader.go(f"datasets/{STATIONS}")
    expect(page.get_by_role("link", name="Schema")).to_be_visible()
    expect(page.get_by_role("navigation", name="Parts of the dataset").get_by_role("link", name="Files")).to_have_count(
        0
    )
    reader.go(f"datasets/{STATIONS}/-/files")
    expect(page.get_by_text("Page not found")).to_be_visible()


def test_the_last_files_come_first_to_sight(reader: Visit) -> None:
    page = reader.go(FILES)
    expect(page.get_by_role("heading", name=re.compile("The last files, "))).to_be_visible()
    assert "plain.log" in rows(page)
    expect(page.get_by_role("table", name=re.compile("Files that begin on the days of March 2024"))).to_be_visible()


def test_names_lead_to_places_and_both_to_files(reader: Visit) -> None:
    page = reader.go(FILES)
    names = page.get_by_role("region", name="names")
    names.get_by_role("link", name="sensor").click()
    expect(page.get_by_role("heading", name="Origins of sensor")).to_be_visible()
    names.get_by_role("link", name="roof-3").click()
    expect(page.get_by_label("Where", exact=True)).to_have_value("roof-3")
    expect(page.get_by_role("heading", name=re.compile("The last files of sensor from roof-3"))).to_be_visible()
    assert "what=sensor&where=roof-3" in page.url
    expect(page.get_by_text("15 files", exact=True)).to_be_visible()
    page.get_by_role("searchbox", name="Search names").fill("roof-4")
    expect(names.get_by_role("link")).to_have_text(["roof-4"])
    page.get_by_role("link", name="Clear").click()
    expect(page.get_by_label("What", exact=True)).to_have_value("")


def test_a_day_of_the_calendar_shows_its_files(reader: Visit) -> None:
    page = reader.go(f"{FILES}?what=sensor")
    page.get_by_role("button", name="Earlier month").click()
    page.get_by_role("button", name="January: 62 files").click()
    page.get_by_role("link", name="2023-01-17: 2 files").click()
    expect(page.get_by_role("heading", name="Files of sensor, 2023-01-17")).to_be_visible()
    assert rows(page) == ["sensor-34.txt", "sensor-35.txt"]
    expect(page.get_by_label("From", exact=True)).to_have_value("2023-01-17")
    page.get_by_role("button", name="Earlier year").click()
    page.get_by_role("link", name="All of 2022").click()
    expect(page.get_by_role("heading", name="Files of sensor, 2022-01-01 to 2022-12-31")).to_be_visible()
    assert rows(page)[0] == "sensor-0.txt"
    page.go_back()
    expect(page.get_by_role("heading", name="Files of sensor, 2023-01-17")).to_be_visible()


def test_what_is_written_into_the_form_stands_in_the_address(reader: Visit) -> None:
    page = reader.go(FILES)
    page.get_by_label("What", exact=True).fill("log")
    page.get_by_label("Job").fill("job-1")
    page.get_by_label("Job").press("Enter")
    expect(page.get_by_role("heading", name="Files of log of the job job-1")).to_be_visible()
    assert sorted(rows(page)) == ["long.log", "packed.log.gz"]
    page.get_by_label("From", exact=True).fill("2024-03-01")
    page.get_by_label("To", exact=True).fill("2024-03-01")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("heading", name="Files of log, 2024-03-01")).to_be_visible()
    assert rows(page) == ["plain.log"], "it has begun the day before, and goes on"
    assert "job" not in page.url
    page.reload()
    expect(page.get_by_label("What", exact=True)).to_have_value("log")
    assert rows(page) == ["plain.log"]


def test_pages_of_a_long_list_can_be_shared(reader: Visit) -> None:
    page = reader.go(f"{FILES}?what=sensor&when=always")
    expect(page.get_by_text("100 files on this page")).to_be_visible()
    first = rows(page)
    page.get_by_role("link", name="Next page").click()
    expect(page.get_by_text("30 files on this page, the last one")).to_be_visible()
    expect(page.get_by_role("heading", name="Files of sensor, of all times")).to_be_focused()
    second = rows(page)
    assert len(set(first + second)) == SENSORS
    page.reload()
    expect(page.get_by_text("30 files on this page")).to_be_visible()
    assert rows(page) == second
    page.get_by_role("link", name="First page").click()
    expect(page.get_by_text("100 files on this page")).to_be_visible()


def test_what_makes_no_sense_is_told(reader: Visit) -> None:
    reader.expect("status of 400")
    page = reader.go(f"{FILES}?what=sensor&from=2023-02-01&to=2023-01-01")
    expect(page.get_by_role("alert")).to_contain_text("The range ends before it starts")
    reader.go(f"{FILES}?what=sensor&when=always&cursor=nonsense")
    expect(page.get_by_role("alert")).to_contain_text("Not a cursor")
    page.get_by_role("link", name="Go to the first page").click()
    assert len(rows(page)) == 100
    reader.go(f"{FILES}?what=nothing-like-that")
    expect(page.get_by_text("No matching files")).to_be_visible()


def test_an_empty_archive_says_how_to_fill_it(reader: Visit) -> None:
    page = reader.go("datasets/empty/-/files")
    expect(page.get_by_text("odf archive push")).to_be_visible()


def test_new_files_appear_by_themselves(reader: Visit, workspace: Workspace, tmp_path: Path) -> None:
    from odfpy.archive import open_archive

    page = reader.go("datasets/empty/-/files")
    expect(page.get_by_text("No files yet")).to_be_visible()
    file = tmp_path / "new.log"
    file.write_text("new\n")
    open_archive("empty", workspace=workspace).push([file], what="log", where="here", start="2024-03-01")
    expect(page.get_by_role("link", name="new.log")).to_be_visible()


# --- A file ---


def test_a_file_is_told_in_words(look: Callable[[str], Page]) -> None:
    page = look("plain.log")
    expect(page.locator(".lead").last).to_have_text("log from web9, 2024-02-29 10:00:00 to 2024-03-01 02:00:00 UTC")
    expect(page.get_by_role("region", name="Text of the file")).to_have_text("one\ntwo\n")
    versions = page.get_by_role("list").filter(has_text="Archived")
    expect(versions).to_contain_text("Corrected by ann")
    expect(versions).to_contain_text(f"Reason: wrong host {HTML}")
    expect(versions.get_by_role("deletion")).to_contain_text("web1")
    expect(versions.get_by_role("insertion")).to_contain_text("web9")
    page.get_by_role("link", name="All log from web9 of that day").click()
    assert rows(page) == ["plain.log"]


def test_the_proof_names_the_block_and_who_has_signed_it(look: Callable[[str], Page], workspace: Workspace) -> None:
    page = look("table.csv")
    proof = page.locator("section", has=page.get_by_role("heading", name="Proof"))
    expect(proof).to_contain_text(
        re.compile(r"Block \d+ of \d+ blocks contains the (latest )?record\. It is signed by .*owner")
    )
    proof.get_by_role("button", name="Check the hash").click()
    expect(proof.get_by_role("status")).to_have_text(re.compile("^Unchanged: the hash of .* computed in this browser"))


def test_bytes_that_were_changed_are_found(reader: Visit, look: Callable[[str], Page]) -> None:
    reader.expect("status of 404", "ERR_INCOMPLETE|ERR_CONTENT_LENGTH|ERR_ABORTED|request failed")
    page = look("changed.txt")
    expect(page.get_by_role("alert")).to_contain_text("do not match the record")
    page.get_by_role("button", name="Check the hash").click()
    expect(page.get_by_role("alert").last).to_contain_text("The download ended early")


def test_a_file_can_be_downloaded(look: Callable[[str], Page], records: Mapping[str, FileRecord]) -> None:
    page = look("packed.log.gz")
    expect(page.get_by_role("region", name="Text of the file")).to_have_text("unpacked\n" * 3)
    expect(page.get_by_text("Unpacked from gzip.")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "packed.log.gz"
    assert Path(download.value.path()).stat().st_size == records["packed.log.gz"].size


def test_commands_to_get_it_name_it(
    look: Callable[[str], Page], served: Site, records: Mapping[str, FileRecord]
) -> None:
    page = look("odd.txt")
    snippets = page.locator(".snippet")
    address = f"{served.url}/logs/v0/archive/files/{records['odd.txt'].id}/data"
    expect(snippets.filter(has_text="odf: fetch it")).to_contain_text(f"odf archive fetch {address}")
    expect(snippets.filter(has_text="curl")).to_contain_text(f"-o ./{LONG}")
    expect(snippets.filter(has_text="Python")).to_contain_text(f'open_archive("{served.url}/logs")')


# --- Hostile files ---


def test_a_page_of_html_is_only_text(look: Callable[[str], Page]) -> None:
    page = look("page.html")
    expect(page.get_by_role("heading", level=2).first).to_have_text(f"{HTML}.html")
    expect(page.get_by_role("region", name="Text of the file")).to_contain_text("<script>")
    assert page.locator("main img, main script, main iframe").count() == 0
    assert "hacked" not in page.title()


def test_a_drawing_is_a_picture_in_which_nothing_runs(look: Callable[[str], Page], reader: Visit) -> None:
    page = look("drawing.svg")
    page.get_by_role("button", name="Show as a picture").click()
    picture = page.get_by_role("img", name="Picture drawing.svg")
    expect(picture).to_have_js_property("naturalWidth", 40)
    source = picture.get_attribute("src") or ""
    reader.check()
    reader.expect("Blocked script execution", "Content Security Policy", "https://example.com/x.png")
    page.goto(source)
    assert "hacked" not in page.title(), "nor for whoever opens its address"


def test_letters_of_other_scripts_and_long_names_have_room(look: Callable[[str], Page]) -> None:
    page = look("odd.txt")
    expect(page.get_by_role("heading", level=2).first).to_have_text(LONG)
    expect(page.get_by_role("region", name="Text of the file")).to_have_text("שלום עולם\n␛[31mred␇\n")
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("long.log", "This is only the beginning."),
        ("text-bomb.txt.gz", "Unpacked from gzip. This is only the beginning."),
        ("bomb.log.gz", "these are its first bytes"),
        ("bytes.bin", "these are its first bytes"),
        ("empty.txt", "The file is empty."),
        ("no.parquet", "It is not a readable Parquet file"),
        ("damaged.parquet", "Parquet"),
        ("huge.png", "The picture is too large"),
        ("wide.parquet", "The first 60 of 1,000 columns."),
        ("empty.parquet", "The table has no columns."),
        ("table.csv", "The first 100 rows."),
    ],
)
def test_what_is_left_out_is_said(look: Callable[[str], Page], name: str, said: str) -> None:
    preview = look(name).locator("section", has_text="Preview").first
    expect(preview).to_contain_text(said)
    assert len(preview.inner_text()) < 300_000
    assert MANY_LINES


def test_tables_are_shown_with_their_values(look: Callable[[str], Page]) -> None:
    page = look("table.parquet")
    table = page.get_by_role("region", name="First rows of the file")
    expect(table.get_by_role("columnheader")).to_have_text(["id", "when", 'na"me', "tags"])
    expect(table.get_by_role("row")).to_have_count(101)
    expect(table.get_by_role("row").nth(8)).to_contain_text("<b>7</b>")
    csv = look("table.csv").get_by_role("region", name="First rows of the file")
    expect(csv.get_by_role("columnheader")).to_have_text(["day", HTML, "=cmd()"])


def test_pictures_are_shown(look: Callable[[str], Page], reader: Visit) -> None:
    picture = look("picture.png").get_by_role("img", name="Picture picture.png")
    expect(picture).to_have_js_property("naturalWidth", PICTURE_SIZE[0])
    expect(look("broken.png").get_by_text("The picture cannot be shown")).to_be_visible()


# --- What is not there ---


def test_a_page_has_the_record_of_a_withdrawn_file_and_not_its_bytes(look: Callable[[str], Page]) -> None:
    page = look("secret.txt")
    expect(page.locator(".note")).to_contain_text(
        "by bob: has passwords in it. Searches do not list it, and its content is"
    )
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(page.get_by_text("wrong host, found later")).to_be_visible()
    expect(page.get_by_role("link", name="Download")).to_have_count(0)
    assert page.get_by_text("password", exact=True).count() == 0
    page.get_by_role("button", name="Check the hash").click()
    expect(page.get_by_role("status")).to_contain_text("Unchanged: both hashes of")


def test_files_whose_bytes_are_not_here_say_so(look: Callable[[str], Page]) -> None:
    page = look("lost.txt")
    expect(page.locator(".note")).to_contain_text("odf pull logs --files all")
    expect(page.get_by_role("link", name="Download")).to_have_count(0)
    page = look("removed.txt")
    expect(page.locator(".note")).to_contain_text("The record still proves its hash")
    expect(page.get_by_role("heading", name="History")).to_be_visible()


def test_a_file_that_is_none_leads_back(reader: Visit) -> None:
    reader.expect("status of 404")
    page = reader.go(f"{FILES}/nothing")
    expect(page.get_by_role("heading", name="There is no file nothing")).to_be_visible()
    page.get_by_role("link", name="All files of logs").click()
    expect(page.get_by_role("heading", name="Contents")).to_be_visible()


def test_who_may_not_read_it_learns_nothing(nobody: Visit, records: Mapping[str, FileRecord]) -> None:
    nobody.expect("status of 401")
    page = nobody.go(f"{FILES}/{records['plain.log'].id}")
    expect(page.get_by_text("There is no dataset logs that you may read")).to_be_visible()
    nobody.go("datasets/open/-/files")
    expect(page.get_by_text("No files yet")).to_be_visible()


# --- For everybody ---

SHOWN = ["", "plain.log", "table.csv", "?what=sensor&when=always", "picture.png", "drawing.svg", "secret.txt", "removed.txt", "odd.txt"]  # fmt: skip


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("shown", SHOWN)
def test_axe_finds_nothing_and_phones_have_room(reader: Visit, records: Mapping[str, FileRecord], shown: str) -> None:
    page = reader.go(FILES + (f"/{records[shown].id}" if shown in records else shown))
    expect(page.locator("main .spinner")).to_have_count(0)
    expect(page.get_by_role("heading", name="When" if shown not in records else "Proof")).to_be_visible()
    expect(page.locator("main .spinner")).to_have_count(0)
    check_for_everybody(page)
    for least in (640, 360):
        page.set_viewport_size({"width": least, "height": 640})
        assert page.evaluate("() => document.documentElement.scrollWidth") <= least


def test_the_keyboard_alone_finds_a_file(reader: Visit) -> None:
    page = reader.go(FILES)
    page.get_by_label("What", exact=True).focus()
    page.keyboard.type("sensor")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=re.compile("The last files of sensor"))).to_be_visible()
    day = page.get_by_role("link", name="2023-03-05: 2 files")
    for _ in range(120):
        if day.evaluate("(one) => one === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Files of sensor, 2023-03-05")).to_be_visible()
    page.get_by_role("link", name="sensor-128.txt").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="sensor-128.txt")).to_be_visible()
    expect(page.get_by_role("main")).to_be_focused()
