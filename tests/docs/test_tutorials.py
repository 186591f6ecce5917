"""Every tutorial is reached from the list of tutorials, is run when the pages are built, and ends in a picture."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "tutorials"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LISTED = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def listed_pages() -> list[Path]:
    """Return the pages that the list of tutorials names, in its order."""
    (entries,) = LISTED.findall((FOLDER / "index.md").read_text(encoding="utf-8"))
    names = [line.rpartition("<")[2].rstrip(">") for line in entries.splitlines() if line and not line.startswith(":")]
    return [(FOLDER / f"{name}.md").resolve() for name in names]


def faults(text: str) -> list[str]:
    """Return what a tutorial lacks: being run, and a picture with a text in the last cell that readers see."""
    shown = [cell for cell in CELL.findall(text) if ":tags: [remove-cell]" not in cell]
    last = shown[-1] if shown else ""
    found = []
    if "file_format: mystnb" not in text.partition("\n\n")[0]:
        found.append("it is not run")
    if not re.search(r':mystnb: \{image: \{alt: "[^"]{20,}"\}\}', last):
        found.append("its last cell has no picture with a text")
    if not last.rstrip().endswith("plt.show()"):
        found.append("its last cell does not end in a picture")
    return found


def test_all_tutorials_are_listed_once():
    pages = listed_pages()
    assert len(pages) == len(set(pages)) and all(page.is_file() for page in pages)
    assert {page.resolve() for page in FOLDER.glob("*.md")} - set(pages) == {(FOLDER / "index.md").resolve()}


@pytest.mark.parametrize("page", listed_pages(), ids=lambda page: page.stem)
def test_a_tutorial_ends_in_a_picture(page):
    assert faults(page.read_text(encoding="utf-8")) == []


def test_what_is_no_tutorial_is_seen():
    head = "---\nfile_format: mystnb\n---\n\n"
    picture = '```{code-cell} ipython3\n:mystnb: {image: {alt: "A curve that falls over time"}}\n\nplt.show()\n```\n'
    code = "```{code-cell} ipython3\nprint(1)\n```\n"
    hidden = "```{code-cell} ipython3\n:tags: [remove-cell]\n\nshutil.rmtree(folder)\n```\n"
    assert faults(head + code + picture + hidden) == []
    assert len(faults(head + picture + code)) == 2
    assert len(faults(head + picture.replace("A curve that falls over time", ""))) == 1
    assert faults("# Title\n\n" + picture) == ["it is not run"]
    assert len(faults("# Title\n")) == 3
