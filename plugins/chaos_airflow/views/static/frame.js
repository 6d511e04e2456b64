// Keeps what goes on up to date, and makes a page at home in Airflow's frame: in Airflow's colours, and with links to
// Airflow's own pages leading the window there instead of nesting it in itself. Without this script every page and link
// still works.
"use strict";

const airflow = window.parent !== window && window.parent.document;

function takeColours() {
  const mode = airflow.documentElement.classList.contains("dark") ? "dark" : "light";
  document.documentElement.dataset.mode = mode;
  for (const frame of document.querySelectorAll("iframe")) {
    frame.contentWindow.postMessage({ mode }, "*"); // a report listens
    if (frame.contentDocument) frame.contentDocument.documentElement.dataset.mode = mode; // Data Docs run no script
  }
}

function leave(event) {
  const link = event.target.closest("a[data-airflow]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  window.parent.history.pushState(null, "", link.href); // as a click in Airflow does: its router follows the history
  window.parent.dispatchEvent(new PopStateEvent("popstate"));
}

async function follow(part) { // a run that goes on says how it is doing; when it is over, its page is another
  const answer = await fetch(part.dataset.now).catch(() => null);
  if (answer?.status === 204) location.reload();
  else if (answer?.ok) part.innerHTML = await answer.text();
  const over = !["", "start", "drive"].includes(part.querySelector("[data-phase]").dataset.phase);
  for (const door of document.querySelectorAll(".stop")) door.hidden = over;
}

for (const part of document.querySelectorAll("[data-now]")) setInterval(follow, 2000, part);

async function stop(button) { // the task of the load fails, then the tasks after it collect and judge
  const said = button.parentElement.querySelector("[role=status]");
  const say = (text) => { said.textContent = text; };
  button.disabled = true;
  const load = await fetch(button.dataset.stop).catch(() => null);
  if (!load?.ok) say(`Not stopped: Airflow answers ${load?.status ?? "nothing"}.`);
  else if (["success", "failed"].includes((await load.json()).state)) return say("The load has ended already.");
  else {
    const failed = { method: "PATCH", headers: { "Content-Type": "application/json" }, body: '{"new_state": "failed"}' };
    const answer = await fetch(button.dataset.stop, failed).catch(() => null);
    if (answer?.ok) return say("Stopping.");
    say(`Not stopped: Airflow answers ${answer?.status ?? "nothing"}.`);
  }
  button.disabled = false;
}

for (const button of document.querySelectorAll("[data-stop]")) button.addEventListener("click", () => stop(button));

if (airflow) {
  takeColours();
  for (const frame of document.querySelectorAll("iframe")) frame.addEventListener("load", takeColours);
  new MutationObserver(takeColours).observe(airflow.documentElement, { attributeFilter: ["class"] });
  document.addEventListener("click", leave);
}
