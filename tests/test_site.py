"""The documentation site: it is built without a warning, loads nothing from elsewhere, and looks as on a git host."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
import typer
from markdown_it import MarkdownIt

from odfpy.cli.commands import COMMANDS, app
from odfpy.cli.session import Session

REPOSITORY = Path(__file__).resolve().parents[1]
BUILDER = REPOSITORY / "docs" / "builder"
ELEMENTS = ("h1", "h2", "h3", "ul", "ol", "li", "table", "tr", "pre", "blockquote", "img")
LOADED = re.compile(r"<(?!a\b)\w+\b[^>]*?\s(?:src|href|srcset|data|poster)=[\"']?([^\"' >]+)")
AGAIN = "run `make pictures`"
A_FEW = "odfpy odfpy.testing odfpy.values"
"""Packages on the site of most tests: pages of all of them take most of the time of a build."""


class Elements(HTMLParser):
    """What a page consists of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] += tag in ELEMENTS


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site with few packages, built as `make docs` does it, in a process that reaches no other host."""
    return without_a_warning(tmp_path_factory.mktemp("site"), ODF_SITE_PACKAGES=A_FEW)


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site with all packages."""
    return without_a_warning(tmp_path_factory.mktemp("whole_site"))


def without_a_warning(folder: Path, **more: str) -> Path:
    done = built(REPOSITORY / "mkdocs.yml", folder, **more)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def built(configuration: Path, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    nowhere = "http://127.0.0.1:9"  # the port of nobody
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", configuration, "--site-dir", folder],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "http_proxy": nowhere, "https_proxy": nowhere, **more},
        capture_output=True,
        text=True,
        check=False,
    )


def test_links_that_lead_nowhere_fail(tmp_path: Path):
    wrong = ("page.md#nowhere", "none.md", "none.svg", "/page.md", "folder/")
    pages = tmp_path / "pages"
    pages.mkdir()
    configuration = tmp_path / "mkdocs.yml"
    own = {"docs_dir": "pages", "hooks": [], "watch": [], "plugins": []}
    configuration.write_text(json.dumps({"INHERIT": str(REPOSITORY / "mkdocs.yml"), **own}))  # JSON is YAML
    (pages / "page.md").write_text("# A page\n")
    (pages / "index.md").write_text("[here](page.md#a-page)\n" + "".join(f"[there]({link})\n" for link in wrong))
    done = built(configuration, tmp_path / "site")
    assert done.returncode == 1
    assert done.stderr.count("WARNING") == len(wrong)
    assert all(f"link '{link}'" in done.stderr for link in wrong)


def test_pages_load_nothing_from_other_hosts(site: Path):
    assert require_own_pages(site) > 100


@pytest.mark.slow
def test_nor_do_those_of_all_packages(whole_site: Path):
    assert require_own_pages(whole_site) > 200


def require_own_pages(site: Path) -> int:
    """Check that no page or style sheet loads anything from elsewhere; gives the number of pages."""
    pages = sorted(site.rglob("*.html"))
    for page in pages:
        loaded = LOADED.findall(page.read_text(encoding="utf-8"))
        assert loaded
        assert not [address for address in loaded if re.match(r"\s*([a-z]+:)?//", address)], page.name
    for sheet in site.rglob("*.css"):
        found = re.findall(r"(?:url\(|@import)\s*['\"]?((?:[a-z]+:)?//[^'\")]+)", sheet.read_text(encoding="utf-8"))
        assert not found, sheet.name
    return len(pages)


@pytest.mark.parametrize(
    "picture", sorted((REPOSITORY / "docs/images").glob("*.svg")), ids=lambda picture: picture.stem
)
def test_pictures_stand_alone_and_know_light_and_dark(picture: Path):
    text = picture.read_text(encoding="utf-8")
    assert "@media (prefers-color-scheme: dark)" in text
    assert re.findall(r"https?://[^\"' <]+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"base64|<script|<image|@import|[0-9] s\)", text)


def test_the_search_knows_pages_commands_and_names(site: Path):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    text = {entry["location"]: f"{entry['title']} {entry['text']}" for entry in index["docs"]}
    assert "watermark" in text["watermarks.html"].lower()
    assert "--reset-derivatives-on-diverged-input" in text["commands/pull.html"]
    assert "as_of" in " ".join(text[place] for place in text if place.startswith("api.html#odfpy.client.dataset"))
    assert (site / "search" / "search_index.js").is_file(), "for pages that are opened from the disk"


def test_every_command_has_a_page_with_all_its_options(site: Path):
    root = typer.main.get_command(app)
    context = root.make_context("odf", [], resilient_parsing=True, obj=Session())
    for name in COMMANDS:
        page = (site / "commands" / f"{name}.html").read_text(encoding="utf-8")
        command = root.get_command(context, name)
        for one in (command, *getattr(command, "commands", {}).values()):
            for param in one.params:
                if param.param_type_name == "option" and not param.hidden:
                    assert max(param.opts, key=len) in page, f"{name} {one.name}"


def modules() -> set[str]:
    """The names of all modules that the reference is to have."""
    paths = [path.relative_to(REPOSITORY).with_suffix("") for path in (REPOSITORY / "odfpy").rglob("*.py")]
    return {".".join(path.parts) for path in paths if not path.name.startswith("__")}


def in_reference(site: Path) -> set[str]:
    pages = (page.read_text(encoding="utf-8") for page in (site / "packages").glob("*.html"))
    return {name for page in pages for name in re.findall(r'id="(odfpy[\w.]*)"', page)}


def test_every_module_is_to_be_in_the_reference(site: Path):
    """And those of the packages that are built are there."""
    texts = builder("package_reference").package_pages().values()
    assert modules() - {name for text in texts for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)} == set()
    assert {name for name in modules() if name.rpartition(".")[0] in A_FEW.split()} - in_reference(site) == set()


@pytest.mark.slow
def test_every_module_is_in_the_reference(whole_site: Path):
    assert modules() - in_reference(whole_site) == set()


def test_pages_have_the_structure_that_they_have_on_a_git_host(site: Path):
    repository_pages = builder("repository_pages")
    for path, text in repository_pages.pages().items():
        article = (site / repository_pages.destination(path)).read_text(encoding="utf-8")
        article = article[article.index("<article") : article.index("</article>")]
        assert Elements(article).counts == Elements(MarkdownIt("commonmark").enable("table").render(text)).counts, path


def test_the_picture_of_the_packages_is_that_of_the_architecture_test():
    package_map = builder("package_map")
    assert package_map.PICTURE.read_text(encoding="utf-8") == package_map.drawing(package_map.packages()), AGAIN


def test_the_manual_page_is_up_to_date():
    man_page = builder("man_page")
    assert man_page.PAGE.read_text(encoding="utf-8") == man_page.page(), AGAIN


def test_groff_has_nothing_to_say_of_the_manual_page():
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", BUILDER.parent / "odf.1"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "odf provenance" in re.sub(r"\x1b\[[\d;]*m", "", done.stdout)


def test_screenshots_show_commands_that_there_are():
    screenshots = builder("screenshots")
    for name, story in screenshots.STORIES.items():
        assert (screenshots.PICTURES / f"{name}.svg").is_file(), AGAIN
        assert {line.split()[0] for line in story} <= {*COMMANDS, "#"}


def builder(name: str) -> ModuleType:
    """A module of `docs/builder`."""
    spec = importlib.util.spec_from_file_location(name, BUILDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BUILDER))
        spec.loader.exec_module(module)
    return module
