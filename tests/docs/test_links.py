"""Every link within the built pages leads to a page and an anchor that exist; images exist and have a text."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
OUTSIDE = ("http:", "https:", "mailto:", "data:", "javascript:")


class Page(HTMLParser):
    """The ids, links, sources of files, and images of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.files, self.images = set(), [], [], []
        self.titles = self.open_links = self.unresolved = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        self.titles += tag == "h1"
        self.open_links += tag == "a"
        self.unresolved += tag == "code" and "xref py" in (found.get("class") or "") and not self.open_links
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("script", "img") and found.get("src"):
            self.files.append(found["src"])
        if tag == "link" and not found.get("href", "#").startswith("#"):
            self.files.append(found["href"])
        if tag == "img":
            self.images.append((found.get("src", ""), found.get("alt")))

    def handle_endtag(self, tag):
        self.open_links -= tag == "a"


@pytest.fixture(scope="module")
def pages(built) -> dict[Path, Page]:
    found = {p: Page(p.read_text(encoding="utf-8")) for p in sorted(built.rglob("*.html")) if "_static" not in p.parts}
    assert len(found) > 150
    return found


def inside(link: str) -> bool:
    return not link.startswith(OUTSIDE)


def test_the_reader_of_pages_finds_what_it_should():
    roles = Page('<a href="#a"><code class="xref py py-func">f</code></a><code class="xref py py-func">g</code>')
    assert roles.unresolved == 1
    page = Page('<h1 id="a">x</h1><a href="b.html#c">y</a><img src="d.png"><img src="e.png" alt="E"><a name="f"></a>')
    assert (page.ids, page.links, page.files) == ({"a", "f"}, ["b.html#c"], ["d.png", "e.png"])
    assert page.images == [("d.png", None), ("e.png", "E")] and page.titles == 1


def test_every_link_leads_to_a_page_and_an_anchor(built, pages):
    broken = []
    for path, page in pages.items():
        for link in filter(inside, page.links):
            target, anchor = urldefrag(link)
            goal = (path.parent / unquote(target.partition("?")[0])).resolve() if target else path
            goal = goal / "index.html" if goal.is_dir() else goal
            if not goal.is_file():
                broken.append(f"{path.relative_to(built)}: {link}: no such file")
            elif anchor and goal in pages and unquote(anchor) not in pages[goal].ids:
                broken.append(f"{path.relative_to(built)}: {link}: no such anchor")
    assert not broken, "\n".join(broken[:40])


def test_every_object_that_a_page_names_has_an_entry_in_the_reference(built, pages):
    """Docstrings may name private objects; pages that were written by hand may not."""
    own = {path.relative_to(built): page.unresolved for path, page in pages.items()}
    wrong = [f"{path}: {count}" for path, count in own.items() if count and "reference" not in path.parts]
    assert not wrong, "\n".join(wrong)


def test_every_file_of_a_page_is_local_and_exists(built, pages):
    wrong = [
        f"{path.relative_to(built)}: {name}"
        for path, page in pages.items()
        for name in page.files
        if not name.startswith("data:")
        and (not inside(name) or not (path.parent / unquote(name.partition("?")[0])).is_file())
    ]
    assert not wrong, "\n".join(wrong[:40])


def test_every_image_says_what_it_shows(built, pages):
    """Sphinx writes the file's name where a page gives no text."""
    silent = [
        f"{path.relative_to(built)}: {source}"
        for path, page in pages.items()
        for source, text in page.images
        if text is None or "_images/" in text or (not text.strip() and "logo" not in source)
    ]
    assert not silent, "\n".join(silent[:40])


def test_no_page_names_a_figure_in_place_of_its_picture(built):
    assert [page.name for page in built.rglob("*.html") if "&lt;Figure size" in page.read_text(encoding="utf-8")] == []


def test_every_page_has_one_heading(built, pages):
    generated = {"genindex.html", "search.html", "py-modindex.html"}
    wrong = [str(path.relative_to(built)) for path, page in pages.items() if page.titles != 1]
    assert not set(wrong) - generated
