"""A page as tests look at it."""

from html.parser import HTMLParser


class ParsedPage(HTMLParser):
    """Collects tags that stay open, addresses, attributes that run scripts, headings, and the text of table rows.

    ``rows`` holds the text of a row, ``cells`` the texts of its cells.
    """

    VOID = frozenset({"meta", "link", "br", "img", "hr", "path", "use", "rect", "line", "circle", "polyline", "input"})

    def __init__(self, text):
        super().__init__()
        self.open, self.addresses, self.rows, self.ids, self.tags, self.handlers = [], [], [], [], [], []
        self.text, self.cells, self.headings = text, [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.handle_startendtag(tag, attrs)
        if tag == "tr":
            self.rows.append("")
            self.cells.append([])

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for key, value in attrs if key in ("href", "src", "xlink:href") and value]
        self.ids += [value for key, value in attrs if key == "id"]
        self.handlers += [key for key, _ in attrs if key.startswith("on")]

    def handle_endtag(self, tag):
        if tag in self.open:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "tr" in self.open and data.strip():
            self.rows[-1] += f"{data.strip()}|"
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1].append(data)
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)
