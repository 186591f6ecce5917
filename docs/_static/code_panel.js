// Fills in the lines of "Your code" on the page of a dataset.
document.addEventListener("DOMContentLoaded", () => {
  for (const panel of document.querySelectorAll(".gb-panel")) {
    const facts = JSON.parse(panel.dataset.facts);
    const part = name => panel.querySelector(`[data-part="${name}"]`);
    const write = () => {
      const language = part("language").value;
      const values = {
        quick: part("quick").checked ? facts.quick[language] : "",
        address: part("dataset").value,
        model: part("model").value,
        test: facts.test,
      };
      panel.querySelector("pre").textContent = facts.templates[language].replace(/\{(\w+)\}/g, (all, key) => values[key] ?? all);
    };
    panel.addEventListener("change", write);
    write();
  }
});
