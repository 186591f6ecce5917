"""Every built page in headless Chromium: on a desktop and a phone, in light and dark mode.

Needs Debian's ``chromium`` (or Chrome) and ``pip install playwright``. Pictures of some pages are written to the folder
``docs/_build/screenshots``, or to the one named by GRAPHBENCH_SCREENSHOTS.
"""

import http.server
import os
import shutil
import threading
from functools import partial
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
SHOWN = (
    "index",
    "tutorials/index",
    "first_five_minutes",
    "tutorials/clrs_hints",
    "tutorials/load_and_look",
    "datasets/index",
    "datasets/algoreas",
    "datasets/co",
    "datasets/generated/algoreas-mst_easy",
    "datasets/generated/clrs-bfs",
    "circuits",
    "sat",
    "training",
    "evaluation",
    "results",
    "reference/data",
    "command_line",
)
SEARCHES = {
    "mst": "datasets/generated/algoreas-mst_",
    "mst_easy": "datasets/generated/algoreas-mst_easy.html",
    "clrs/bfs": "datasets/generated/clrs-bfs.html",
    "spanning tree": "datasets/generated/algoreas-mst_",
    "kissat": "sat.html",
    "clique": "datasets/generated/algoreas-max_clique_",
    "clutrr": "datasets/clutrr.html",
    "Evaluator": "reference/evaluation.html",
    "fine-tune": "training.html",
    "own dataset": "own_data.html",
    "latex": "evaluation.html",
    "slurm": "clusters.html",
    "roc auc": "evaluation.html",
}
LOOK = """() => ({
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  out: [...document.querySelectorAll('main *, header *, footer *')].filter(e => {
    const box = e.getBoundingClientRect();
    if (box.width == 0 || box.right <= innerWidth + 1) return false;
    for (let p = e.parentElement; p; p = p.parentElement)
      if (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(p).overflowX)) return false;
    return getComputedStyle(e).position != 'fixed';
  }).slice(0, 3).map(e => e.outerHTML.slice(0, 160)),
  blank: [...document.images].filter(i => i.complete && i.naturalWidth == 0).map(i => i.src),
})"""

LEAST = 4.5  # the ratio of luminances that WCAG 2.2, level AA, asks of text (success criterion 1.4.3)
FAINT = """least => {
  const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = parts(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.5) return colour;
    }
    return [255, 255, 255];
  };
  const own = e => [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim());
  return [...document.querySelectorAll('body *')]
    .filter(e => own(e) && !e.closest('svg') && e.checkVisibility())
    .map(e => [light(parts(getComputedStyle(e).color)), light(behind(e)), e])
    .filter(([a, b, e]) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < least)
    .map(([a, b, e]) => e.outerHTML.slice(0, 120));
}"""


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright, then apt-get install chromium")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("there is no Chromium: apt-get install chromium, or name the program in CHROMIUM")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(built):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(built)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


class Watch:
    """A page of the browser, and everything that went wrong in it."""

    def __init__(self, browser, address: str) -> None:
        self.page, self.address, self.wrong = browser.new_page(viewport=DESKTOP), address, []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        self.page.on("requestfailed", lambda request: self.wrong.append(f"failed: {request.url}"))
        self.page.on("request", self._local)
        self.page.on("response", lambda r: self.wrong.append(f"{r.status}: {r.url}") if r.status >= 400 else None)

    def _console(self, message) -> None:
        asked = message.location["url"].removeprefix(self.address)
        if message.type == "error" and asked != "favicon.ico":  # browsers ask for it where a page names no icon
            self.wrong.append(f"console: {message.text}")

    def _local(self, request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.wrong.append(f"not local: {request.url}")

    def open(self, name: str) -> None:
        self.page.goto(self.address + name, wait_until="load")

    def dress(self, viewport: dict[str, int], mode: str) -> None:
        """Set the size of the window and the mode, as the reader's own switch does."""
        self.page.set_viewport_size(viewport)
        script = (
            "mode => { document.documentElement.dataset.mode = mode; document.documentElement.dataset.theme = mode }"
        )
        self.page.evaluate(script, mode)

    def look(self, name: str, where: str) -> None:
        """Note what does not fit."""
        seen = self.page.evaluate(LOOK)
        if seen["wide"] > 0:
            self.wrong.append(f"{where}: {seen['wide']} px too wide: {seen['out']}")
        self.wrong += [f"{where}: this image is not shown: {source}" for source in seen["blank"]]


@pytest.fixture
def watch(browser, address):
    watch = Watch(browser, address)
    yield watch
    watch.page.close()


def test_the_watch_sees_what_is_wrong(browser, tmp_path):
    """A page with one fault of every kind; without this the next test could not fail."""
    picture = '<img src="none.png" alt="none">'
    wide = '<main><div style="width:900px">wide</div></main>'
    script = '<script>console.error("broken"); undefined_name()</script><script src="http://127.0.0.1:9/x.js"></script>'
    (tmp_path / "bad.html").write_text(f"<html><body>{wide}{picture}{script}</body></html>")
    watch = Watch(browser, tmp_path.as_uri() + "/")
    watch.open("bad.html")
    watch.dress(PHONE, "dark")
    watch.look("bad.html", "phone")
    text = "\n".join(watch.wrong)
    for fault in ("console: broken", "script: ", "not local: http://127.0.0.1:9", "px too wide", "image is not shown"):
        assert fault in text
    watch.page.close()


def test_every_page_loads_and_fits(built, watch):
    found = {}
    for path in sorted(built.rglob("*.html")):
        name = path.relative_to(built).as_posix()
        if name.startswith("_static/"):
            continue
        watch.wrong.clear()
        watch.open(name)
        for viewport, where in ((DESKTOP, "desktop"), (PHONE, "phone")):
            for mode in ("light", "dark"):
                watch.dress(viewport, mode)
                watch.look(name, f"{where}, {mode}")
        watch.page.set_viewport_size(DESKTOP)
        if watch.wrong:
            found[name] = list(dict.fromkeys(watch.wrong))
    shown = [f"{name}:\n  " + "\n  ".join(wrong) for name, wrong in found.items()]
    assert not found, f"{len(found)} pages\n" + "\n".join(shown[:25])


@pytest.mark.parametrize("words", SEARCHES)
def test_the_search_finds_the_page_first(words, watch):
    watch.open(f"search.html?q={words}")
    watch.page.wait_for_selector("#search-results li a", timeout=60_000)
    watch.page.wait_for_function("() => !document.querySelector('#search-progress')?.textContent.includes('...')")
    first = watch.page.eval_on_selector_all("#search-results li > a", "links => links.slice(0, 5).map(a => a.href)")
    assert first[0].removeprefix(watch.address).startswith(SEARCHES[words]), first
    assert not watch.wrong


def test_the_sidebar_groups_datasets_by_domain(built, watch):
    watch.open("datasets/generated/algoreas-mst_easy.html")
    shown = watch.page.locator(".bd-sidebar-primary nav.bd-links a:visible").all_inner_texts()
    domains = {path.stem for path in (built / "datasets").glob("*.html")} - {"index"}
    assert len(domains) <= len(shown) < 60 and "mst_easy" in shown and "Algorithmic reasoning" in shown


def faint(watch) -> list[str]:
    """Return the elements whose text has too little contrast with what is behind it."""
    watch.page.add_style_tag(content="* { transition: none !important }")
    return watch.page.evaluate(FAINT, LEAST)


def test_faint_text_is_seen(browser, tmp_path):
    """Grey of 119 has 4.48 against white and of 118 has 4.54, by the formula of WCAG worked by hand."""
    style = "<b style='color: rgb({0}, {0}, {0})'>{0}</b>"
    (tmp_path / "grey.html").write_text(
        style.format(119) + style.format(118) + "<svg><text fill='white'>x</text></svg>"
    )
    watch = Watch(browser, tmp_path.as_uri() + "/")
    watch.open("grey.html")
    assert [">119<" in element for element in faint(watch)] == [True]
    watch.page.close()


@pytest.mark.parametrize("name", SHOWN)
def test_text_can_be_read_in_both_modes(name, watch):
    watch.open(f"{name}.html")
    found = {}
    for mode in ("light", "dark"):
        watch.dress(DESKTOP, mode)
        found[mode] = faint(watch)
    assert found == {"light": [], "dark": []}


def test_pictures_of_some_pages(built, watch):
    folder = Path(os.environ.get("GRAPHBENCH_SCREENSHOTS", built.parent / "screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHOWN:
        watch.open(f"{name}.html")
        for viewport, where in ((DESKTOP, "desktop"), (PHONE, "phone")):
            for mode in ("light", "dark"):
                watch.dress(viewport, mode)
                path = folder / f"{name.replace('/', '-')}-{where}-{mode}.png"
                clip = {"x": 0, "y": 0, "width": viewport["width"], "height": 2400}
                watch.page.screenshot(path=path, clip=clip, full_page=True)
                assert path.stat().st_size > 5_000
        watch.page.set_viewport_size(DESKTOP)
