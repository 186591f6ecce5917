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
