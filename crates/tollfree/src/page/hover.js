// SPDX-License-Identifier: MIT OR Apache-2.0
// Shows the value under the pointer of a strip; the page is complete without it.
for (const strip of document.querySelectorAll("[data-before]")) {
  const list = (name) => (strip.dataset[name] ? strip.dataset[name].split(",") : null);
  const before = list("before"), after = list("after");
  const start = BigInt(strip.dataset.start), unit = BigInt(strip.dataset.unit), lead = BigInt(strip.dataset.lead);
  const hint = strip.closest("figure").querySelector(".hint");
  strip.addEventListener("pointermove", (event) => {
    const box = strip.getBoundingClientRect();
    const i = Math.min(before.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * before.length)));
    let at = BigInt(i) * unit - lead;
    if (at < 0n) at = 0n;
    const number = (text) => Number(text).toLocaleString("en", { maximumFractionDigits: 1 });
    hint.textContent = (start ? "address 0x" : "offset 0x") + (start + at).toString(16) + ": " + number(before[i]) + " misses" +
      (after ? " before, " + number(after[i]) + " after" : "");
  });
  strip.addEventListener("pointerleave", () => { hint.textContent = ""; });
}
