"""Lays the pages out for mdBook, and checks what it makes of them: book.py lay-out FOLDER | check FOLDER

Pages keep their places in the repository, so that links between them stay as they are, and files that they link to come along.
A link to a folder, which a book cannot show, and to a page that is not in the book leads to the words alone.
"""

import html.parser
import os
import pathlib
import re
import shutil
import sys
import urllib.parse

SUMMARY = pathlib.Path("docs/SUMMARY.md")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def main() -> None:
    {"lay-out": lay_out, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))


def lay_out(folder: pathlib.Path) -> None:
    pages = [target(SUMMARY, link) for _, _, link in LINK.findall(SUMMARY.read_text())]
    missing = [page for page in pathlib.Path("docs").rglob("*.md") if page not in pages and page != SUMMARY]
    if missing:
        sys.exit(f"docs/SUMMARY.md lacks {', '.join(map(str, missing))}")
    for page in pages:
        write(folder / page, resolved(page, pages, folder))
    # The book's first page, and its list of contents, are at the top.
    summary = LINK.sub(lambda link: f"[{link[2]}]({target(SUMMARY, link[3])})", SUMMARY.read_text())
    write(folder / "SUMMARY.md", summary)


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def target(page: pathlib.Path, link: str) -> pathlib.Path:
    return pathlib.Path(os.path.normpath(page.parent / link.split("#")[0]))


def resolved(page: pathlib.Path, pages: list[pathlib.Path], folder: pathlib.Path) -> str:
    def replace(link: re.Match) -> str:
        image, words, where = link.groups()
        words = LINK.sub(replace, words)
        if re.match(r"[a-z]+:|#", where):
            return f"{image}[{words}]({where})"
        file = target(page, where)
        if file.is_dir() or (file.suffix == ".md" and file not in pages):
            return words
        if file.suffix != ".md":
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / file)
        return f"{image}[{words}]({where})"

    # Not in code: every second part between fences.
    parts = re.split(r"^(```.*?^```)$", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(replace, part) for part in parts)


class Page(html.parser.HTMLParser):
    """The anchors of a page, and where its content links to."""

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
        sys.exit("\n".join(broken) or "there are no pages")
    print(f"{len(pages)} pages, every link leads somewhere")


main()
