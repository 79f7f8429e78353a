"""Hooks of MkDocs for the site: root pages, links out of `docs`, and the pages of the API.

The pages are written for a plain git host, where every relative link leads to a file of the
project. On the site,

- the README, CONTRIBUTING and CHANGELOG are pages too (`MOVED`), and the README is the first;
- a link to a page leads to it wherever it is, and a link to any other file outside of `docs`
  becomes text that names the file;
- headings have the anchors that GitHub gives them;
- the pages of `API` are made from docstrings. Only the names are listed here; mkdocstrings reads
  the sources, and imports nothing.

What does not need MkDocs imports nothing of it: tests run without the tools of the site.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from docs.page_links import CODE, LINK, OUTSIDE, anchor, marked_lines

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
MOVED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "docs/README.md": "contents.md",  # the README of the project is the site's first page
}
"""Where on the site a file of the project is, if not where it is below `docs`."""
_SOURCES = {site: source for source, site in MOVED.items()}
_COMMENT = re.compile(r"\s*<!--(?:(?!-->).)*-->\s*")


class ApiPage(NamedTuple):
    """A page of the API: the public names of a module."""

    module: str
    inherited: bool = False
    """Whether classes are shown with the methods that they inherit."""


API = {
    "api/millstream.md": ApiPage("millstream", inherited=True),
    "api/algebra.md": ApiPage("millstream.algebra"),
    "api/elements.md": ApiPage("millstream.elements"),
    "api/windows.md": ApiPage("millstream.windows"),
    "api/feeds.md": ApiPage("millstream.feeds", inherited=True),
    "api/client.md": ApiPage("millstream.client", inherited=True),
    "api/testing.md": ApiPage("millstream.testing"),
}
"""The pages of the API, by where they are on the site."""


def on_config(config: MkDocsConfig) -> None:
    """Headings get the anchors that links on a git host use."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = lambda text, _: anchor(text)


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Adds the pages that are not below `docs`, or are elsewhere on the site."""
    from mkdocs.structure.files import File

    for source, site in MOVED.items():
        below = files.get_file_from_path(source.removeprefix("docs/"))
        if source.startswith("docs/") and below:
            files.remove(below)
        files.append(File.generated(config, site, abs_src_path=str(ROOT / source)))
    for site in API:
        files.append(File.generated(config, site, content=api_markdown(site)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page for the site."""
    return site_markdown(markdown, page.file.src_uri)


def site_markdown(markdown: str, site: str) -> str:
    """The Markdown of a page of the site, from that of the project's file.

    >>> site_markdown("[a](docs/tour.md#b), `[c](d.md)`, [e](examples/f.py)", "index.md")
    '[a](tour.md#b), `[c](d.md)`, e, `examples/f.py`'
    """
    return "\n".join(
        _site_line(line, site) if is_prose else line
        for line, is_prose in marked_lines(markdown.split("\n"))
    )


def _site_line(line: str, site: str) -> str:
    """A line of prose. Comments, which mark examples and figures, are left out."""
    if _COMMENT.fullmatch(line):
        return ""
    code = [span.span() for span in CODE.finditer(line)]

    def rewritten(link: re.Match[str]) -> str:
        if any(start < link.start() < end for start, end in code):
            return link[0]
        return _site_link(link, site)

    return LINK.sub(rewritten, line)


def _site_link(link: re.Match[str], site: str) -> str:
    path, mark, fragment = link["target"].partition("#")
    if not path or OUTSIDE.match(path):
        return link[0]
    source = _SOURCES.get(site, f"docs/{site}")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if target not in MOVED and not target.startswith("docs/"):
        return link["text"] if target in link["text"] else f"{link['text']}, `{target}`"
    there = MOVED.get(target, target.removeprefix("docs/"))
    relative = posixpath.relpath(there, posixpath.dirname(site) or ".")
    return link[0].replace(f"({link['target']}", f"({relative}{mark}{fragment}")


def api_markdown(site: str) -> str:
    """A page of the API. A name that has a page of its own, or is on another one, is a link."""
    page = API[site]
    listed, described = [], []
    for name in public_names(page.module):
        other = _other_page(page.module, name)
        if other:
            listed.append(f"- [`{page.module}.{name}`]({posixpath.basename(other)})")
        else:
            described.append(_described(page, name))
    summary = (ast.get_docstring(_parsed(page.module)) or "").partition("\n\n")[0]
    links = ["On other pages:", "\n".join(listed)] if listed else []
    return "\n\n".join([f"# {page.module}", summary, *links, *described])


def _other_page(module: str, name: str) -> str | None:
    """The page of a name of `millstream` that is a module, or a public name of one."""
    for site, page in API.items():
        is_below = page.module.startswith(f"{module}.")
        if is_below and (page.module == f"{module}.{name}" or name in public_names(page.module)):
            return site
    return None


def _described(page: ApiPage, name: str) -> str:
    """What mkdocstrings replaces by the description of a name."""
    path = f"{page.module}.{name}"
    # A function may have the name of its module, which Griffe would describe instead.
    # Compared as text: some file systems would find count.py for Count.
    modules = {file.stem for file in _folder(page.module).glob("*")}
    target = f"{path}.{name}" if name in modules else path
    return (
        f"::: {target}\n"
        f"    options:\n"
        f"      heading: {path}\n"
        f"      toc_label: {name}\n"
        f"      inherited_members: {str(page.inherited).lower()}"
    )


def public_names(module: str) -> list[str]:
    """The names in a module's `__all__`; without one, those that it defines."""
    body = _parsed(module).body
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return [name for name in _defined(body) if not name.startswith("_")]


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def _parsed(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text(encoding="utf-8"))


def _file(module: str) -> Path:
    folder = _folder(module)
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def _folder(module: str) -> Path:
    """Where the modules of a package are; a plain module has no such folder."""
    return ROOT.joinpath("src", *module.split("."))
