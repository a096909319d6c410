"""Lays the pages out for mdBook, checks its output, and installs the pages as they are:
book.py lay-out FOLDER | check FOLDER | install FOLDER

Pages keep their paths in the repository, so that links between them stay valid, and linked files are copied. Links to folders,
which a book cannot show, and to pages outside the book are replaced by their text.
"""

import html.parser
import os
import pathlib
import re
import shutil
import sys
import urllib.parse

SUMMARY = pathlib.Path("docs/SUMMARY.md")
# CONTRIBUTING.md links to files of a clone; a package has its license in the file `copyright`.
NOT_INSTALLED = [pathlib.Path("CONTRIBUTING.md"), pathlib.Path("LICENSE")]
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def main() -> None:
    {"lay-out": lay_out, "check": check, "install": install}[sys.argv[1]](pathlib.Path(sys.argv[2]))


def pages_of_summary() -> list[pathlib.Path]:
    return [target(SUMMARY, link) for _, _, link in LINK.findall(SUMMARY.read_text())]


def install(folder: pathlib.Path) -> None:
    """Copies the pages and the files that they link to; links to other files are replaced by their text."""
    pages = [page for page in pages_of_summary() if page not in NOT_INSTALLED]
    for page in pages:
        write(folder / page, resolved(page, pages, folder, installed=True))


def lay_out(folder: pathlib.Path) -> None:
    pages = pages_of_summary()
    missing = [page for page in pathlib.Path("docs").rglob("*.md") if page not in pages and page != SUMMARY]
    if missing:
        sys.exit(f"docs/SUMMARY.md lacks {', '.join(map(str, missing))}")
    for page in pages:
        write(folder / page, resolved(page, pages, folder))
    # The book's first page and table of contents are at the top level.
    summary = LINK.sub(lambda link: f"[{link[2]}]({target(SUMMARY, link[3])})", SUMMARY.read_text())
    write(folder / "SUMMARY.md", summary)


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def target(page: pathlib.Path, link: str) -> pathlib.Path:
    return pathlib.Path(os.path.normpath(page.parent / link.split("#")[0]))


def resolved(page: pathlib.Path, pages: list[pathlib.Path], folder: pathlib.Path, installed: bool = False) -> str:
    def replace(link: re.Match) -> str:
        image, words, where = link.groups()
        words = LINK.sub(replace, words)
        if re.match(r"[a-z]+:|#", where):
            return f"{image}[{words}]({where})"
        file = target(page, where)
        if file.is_dir() or (file.suffix == ".md" and file not in pages) or (installed and file in NOT_INSTALLED):
            return words
        if file.suffix != ".md":
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / file)
        return f"{image}[{words}]({where})"

    # Skips code: every second part between fences.
    parts = re.split(r"^(```.*?^```)$", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(replace, part) for part in parts)


class Page(html.parser.HTMLParser):
    """Collects the anchors of a page, and the targets of its links."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list) -> None:
        values = dict(attributes)
        if "id" in values:
            self.anchors.add(values["id"])
        for name in ("href", "src"):
            if values.get(name):
                self.links.append(values[name])


def check(folder: pathlib.Path) -> None:
    pages = {path: Page(path) for path in folder.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:|//", link) or path.name in ("404.html", "toc.html"):
                continue
            where, _, anchor = urllib.parse.unquote(link).partition("#")
            file = pathlib.Path(os.path.normpath(path.parent / where)) if where else path
            if not file.exists() or (anchor and file in pages and anchor not in pages[file].anchors):
                broken.append(f"{path.relative_to(folder)}: {link}")
    if broken or len(pages) < 20:
        sys.exit("\n".join(broken) or "no pages")
    print(f"{len(pages)} pages, all links are valid")


main()
