// What a page gains with scripts on: forms are sent once, focus goes where the eye goes, keys, polls that rest, copying.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const typing = (element) => element.closest("input, textarea, select, [contenteditable]");

// What takes longer than a blink is said, once, and the word goes when the answer is there.
let waiting = 0;
const wait = () => { clearTimeout(waiting); waiting = setTimeout(() => { $("#status").textContent = document.body.dataset.slow; }, 400); };
const arrived = () => {
  clearTimeout(waiting);
  if ($("#status").textContent === document.body.dataset.slow) $("#status").textContent = "";
};
document.addEventListener("htmx:before:request", (event) => { if (event.target.id !== "live") wait(); });
document.addEventListener("htmx:finally:request", arrived);

// A second press while the first is on its way does nothing. The server has its own guard.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || form.hasAttribute("hx-post")) return;
  if (form.getAttribute("aria-busy") === "true") { event.preventDefault(); return; }
  if (form.dataset.download === undefined) { form.setAttribute("aria-busy", "true"); wait(); }
});
// Back from the browser's own store: such a form can be sent again.
window.addEventListener("pageshow", () => {
  arrived();
  document.querySelectorAll('form[aria-busy="true"]').forEach((form) => form.removeAttribute("aria-busy"));
});

// Polls rest while nobody looks, and while somebody paused them.
let paused = false;
document.addEventListener("htmx:before:request", (event) => {
  const source = event.target;
  if (source.id === "live" && (document.hidden || paused)) event.preventDefault();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-pause]");
  if (button) {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    return;
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    navigator.clipboard.writeText(copy.dataset.copy).then(() => {
      const status = $("#status");
      status.textContent = copy.dataset.copied;
    });
  }
});

// After a swap the focus goes to what the answer names, else to what took the place of what had it, and never to the page's body.
// Seen on the page itself: what htmx says of a swap is lost when the element that asked is swapped away.
let had = null;
document.addEventListener("focusin", ({ target }) => {
  const homes = [];
  for (let home = target; home; home = home.parentElement) if (home.id) homes.push(home.id);
  had = { target, homes, tag: target.tagName, text: target.textContent.trim() };
});
const giveFocus = (one) => {
  if (!one.matches("a, button, input, select, textarea, [tabindex]")) one.setAttribute("tabindex", "-1");
  one.focus({ preventScroll: true });
};
const refocus = () => {
  const wanted = $("[data-focus]");
  if (wanted) { wanted.removeAttribute("data-focus"); wanted.focus(); return; }
  if (!had || had.target.isConnected || document.activeElement !== document.body) return;
  const home = had.homes.map((id) => document.getElementById(id)).find(Boolean) || $("main");
  const alike = [...home.querySelectorAll(had.tag)];
  const again = alike.find((one) => one.textContent.trim() === had.text) || (alike.length === 1 && alike[0]);
  giveFocus(home.tagName === had.tag ? home : again || $("[data-open], h1, h2, h3", home) || home);
};
document.addEventListener("DOMContentLoaded", () => {
  refocus();
  new MutationObserver(refocus).observe(document.body, { childList: true, subtree: true });
  document.querySelectorAll("[data-js]").forEach((element) => { element.hidden = false; });
});

// Keys, unless the reader turned them off.
const rows = () => [...document.querySelectorAll("[data-row] a[data-open], a[data-row]")];
const follow = (selector) => { const link = $(selector); if (link) link.click(); };
const step = (by) => {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement);
  all[Math.min(all.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by))].focus();
};
const KEYS = {
  "/": () => { const field = $("[data-filter]"); if (field) { field.focus(); field.select?.(); } },
  j: () => step(1),
  k: () => step(-1),
  o: () => { if (rows().includes(document.activeElement)) document.activeElement.click(); },
  "[": () => follow("[data-previous]"),
  "]": () => follow("[data-next]"),
  v: () => { const button = $("[data-verify]"); if (button) button.focus(); },
  "?": () => $("#shortcuts")?.showModal(),
};
document.addEventListener("keydown", (event) => {
  if (!document.body.hasAttribute("data-shortcuts")) return;
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || $("dialog[open]")) return;
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(); }
});
