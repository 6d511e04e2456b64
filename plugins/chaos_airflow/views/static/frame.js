// Makes a page at home in Airflow's frame: in Airflow's colours, and with links to Airflow's own pages leading the
// window there instead of nesting it in itself. Without this script every page and link still works.
"use strict";

const airflow = window.parent !== window && window.parent.document;

function takeColours() {
  document.documentElement.dataset.mode = airflow.documentElement.classList.contains("dark") ? "dark" : "light";
}

function leave(event) {
  const link = event.target.closest("a[data-airflow]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  window.parent.history.pushState(null, "", link.href); // as a click in Airflow does: its router follows the history
  window.parent.dispatchEvent(new PopStateEvent("popstate"));
}

if (airflow) {
  takeColours();
  new MutationObserver(takeColours).observe(airflow.documentElement, { attributeFilter: ["class"] });
  document.addEventListener("click", leave);
}
