for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.querySelectorAll("th[data-sort]")];
  for (const head of heads) {
    const sort = () => {
      const column = [...head.parentElement.children].indexOf(head);
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0];
      const value = (row) => row.children[column].dataset.value ?? row.children[column].textContent.trim();
      const compare = (a, b) => {
        const [x, y] = [value(a), value(b)];
        const [p, q] = [Number(x), Number(y)];
        if (x === "" || y === "") return (x === "") - (y === "");
        const order = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y) : p - q;
        return up ? order : -order;
      };
      [...body.rows].sort(compare).forEach((row) => body.append(row));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  }
}
const filters = document.querySelector("form.filters");
if (filters) {
  const table = document.querySelector("table.lines"), rows = [...table.tBodies[0].rows];
  const field = (name) => filters.elements[name];
  const apply = () => {
    const words = field("text").value.toLowerCase().split(/\s+/).filter(Boolean), kind = field("class").value;
    table.className = `lines sortable show-${kind}`;
    let shown = 0;
    for (const row of rows) {
      const source = row.getAttribute(`data-source-${kind}`);
      const text = row.textContent.toLowerCase();
      const fits = (!field("domain").value || row.dataset.domain === field("domain").value)
        && source !== null && (!field("source").value || source === field("source").value)
        && words.every((word) => text.includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    filters.querySelector("output").textContent = `${shown} of ${rows.length} datasets`;
  };
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("input", apply);
  apply();
}
