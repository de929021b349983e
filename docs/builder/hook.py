"""What MkDocs calls: the files of the site, and their order.

Pages keep the paths that they have in the repository, so that their links, which work on a git host, work here too.
"""

from __future__ import annotations

from command_reference import command_pages
from markdown_air import Air
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from package_reference import PYTHON, package_pages, public_page
from repository_pages import REPOSITORY, START, destination, linked_files, navigation, pages


def on_config(config: MkDocsConfig) -> None:
    """Have pages look as they do on a git host."""
    config.markdown_extensions.append(Air())


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the repository, what they link to, and the references."""
    texts, commands, packages = pages(), command_pages(), package_pages()
    for path in linked_files(texts):
        files.append(File.generated(config, path, abs_src_path=str(REPOSITORY / path)))
    for path, text in {**texts, **public_page(), **commands, **packages}.items():
        page = File.generated(config, path, content=text)
        page.dest_uri = destination(path)
        files.append(page)
    config.nav = navigation(texts, [PYTHON, {"Commands": list(commands)}, {"Packages": list(packages)}])
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> None:
    """Have no menu beside the first page: it would have one line."""
    del markdown
    if page.file.src_uri == START:
        page.meta["hide"] = ["navigation"]
