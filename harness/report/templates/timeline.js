// Draws the timeline in the colours of the page, and joins it with the findings, both ways.
"use strict";
(() => {
  const chart = document.getElementById("chart"), library = document.getElementById("library");
  const figure = JSON.parse(document.getElementById("figure").textContent);
  const probe = document.body.appendChild(document.createElement("i"));
  const colours = new Map();
  const hidden = new Set();

  function colour(name) {
    probe.style.color = name;
    if (!colours.has(name)) colours.set(name, getComputedStyle(probe).color);
    return colours.get(name);
  }

  function painted(value) {
    if (typeof value === "string") return value.startsWith("var(--") ? colour(value) : value;
    if (Array.isArray(value)) return typeof value[0] === "object" ? value.map(painted) : value;
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, painted(part)]));
  }

  function draw() {
    colours.clear();
    const range = chart.layout?.xaxis.range ?? figure.layout.xaxis.range;
    const layout = painted(figure.layout);
    layout.xaxis.range = [...range];
    if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false; // a finger scrolls the page
    const data = painted(figure.data).map((trace) => ({ ...trace, visible: !hidden.has(trace.name) }));
    return Plotly.react(chart, data, layout, { responsive: true, displayModeBar: false });
  }

  function show(from, to) {
    return Plotly.relayout(chart, { "xaxis.range": [from, to] });
  }

  function follow() { // an address: #at-12.345 is an instant, anything else a place on the page
    const instant = /^#at-([\d.]+)$/.exec(location.hash);
    if (instant) {
      const at = Number(instant[1]), [first, last] = figure.layout.xaxis.range, around = Math.min(1, (last - first) / 20);
      document.getElementById("timeline").scrollIntoView();
      if (chart.layout) show(at - around, at + around);
    } else {
      for (let part = document.getElementById(location.hash.slice(1)); part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
      document.getElementById(location.hash.slice(1))?.scrollIntoView();
    }
  }

  function go(hash) {
    if (location.hash === hash) follow(); else location.hash = hash;
  }

  function begin() {
    draw().then(() => {
      chart.on("plotly_click", ({ points: [point] }) => { if (String(point.customdata).startsWith("finding-")) go(`#${point.customdata}`); });
      if (location.hash) follow();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-mode"] });
  }

  addEventListener("hashchange", follow);
  addEventListener("message", ({ data }) => { if (["light", "dark"].includes(data?.mode)) document.documentElement.dataset.mode = data.mode; });
  addEventListener("click", ({ target }) => { // once more to where the address leads already
    const link = target.closest("a[href^='#']");
    if (link && link.hash === location.hash) follow();
  });
  for (const button of document.querySelectorAll("#legend button[data-name]")) {
    button.addEventListener("click", () => {
      const shown = hidden.delete(button.dataset.name);
      if (!shown) hidden.add(button.dataset.name);
      button.setAttribute("aria-pressed", String(shown));
      draw();
    });
  }
  for (const button of document.querySelectorAll("button[data-zoom]")) {
    button.addEventListener("click", () => {
      const [first, last] = figure.layout.xaxis.range, [from, to] = chart.layout.xaxis.range, half = ((to - from) / 2) * Number(button.dataset.zoom);
      show(Math.max((from + to) / 2 - half, first), Math.min((from + to) / 2 + half, last));
    });
  }
  if (window.Plotly) begin();
  else {
    library.addEventListener("load", begin);
    library.addEventListener("error", () => { document.getElementById("no-library").hidden = false; });
  }
})();
