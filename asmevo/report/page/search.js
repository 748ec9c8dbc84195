"use strict";
// Opens and closes all unchanged parts of the diff, and goes from change to change.
(() => {
  const folded = [...document.querySelectorAll("details.unchanged")];
  const toggle = document.getElementById("unfold");
  if (toggle) toggle.addEventListener("click", () => {
    const open = toggle.getAttribute("aria-pressed") !== "true";
    for (const part of folded) part.open = open;
    toggle.setAttribute("aria-pressed", String(open));
  });
  const changes = [...document.querySelectorAll(".diff-part.changes")];
  let at = -1;
  const go = step => {
    if (!changes.length) return;
    at = (at + step + changes.length) % changes.length;
    changes[at].scrollIntoView({block: "center"});
    const told = document.getElementById("change");
    if (told) told.textContent = `change ${at + 1} of ${changes.length}`;
  };
  for (const [name, step] of [["next-change", 1], ["previous-change", -1]]) {
    const button = document.getElementById(name);
    if (button) button.addEventListener("click", () => go(step));
  }
  for (const tools of document.querySelectorAll(".tools")) tools.hidden = false;
})();
