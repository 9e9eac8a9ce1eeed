// Renews a page in place, as often as the cluster is looked at. Without it, people load the page again.
"use strict";

const RENEW_S = Number(document.body.dataset.renewS);

async function renew() {
  if (document.hidden || document.querySelector("form :focus")) return;
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of ["main", "footer"]) {
    const before = document.querySelector(part);
    const after = fresh.querySelector(part);
    if (before.isEqualNode(after)) continue;
    const open = [...before.querySelectorAll("details")].map((details) => details.open);
    const after_details = [...after.querySelectorAll("details")];
    if (open.length === after_details.length) after_details.forEach((details, at) => { details.open = open[at]; });
    if (part === "main" && before.contains(document.activeElement)) continue; // Somebody reads there by keyboard.
    before.replaceWith(after);
    after.dispatchEvent(new Event("kelpie:renewed", { bubbles: true }));
  }
}

if (RENEW_S > 0) setInterval(() => { renew().catch(() => {}); }, Math.max(RENEW_S, 2) * 1000);
