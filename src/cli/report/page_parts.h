#pragma once

#include <string_view>

/// Style and script of the pages. They stand in a header of their own as they
/// are no C++.
namespace seqconv::internal::report {

inline constexpr std::string_view kFigureStyle = R"(
:root{--ink:#1d232b;--soft:#5c6773;--line:#d9dee4;--paper:#fff;
--heat:#0b5fb0;--cold:#b3431c;
--c0:#1f6fc0;--c1:#c8541a;--c2:#23813f;--c3:#8147b5;
--c4:#a87d00;--c5:#c0326f;--c6:#0d8490;--c7:#62666b}
@media (prefers-color-scheme:dark){
:root{--ink:#e6e9ed;--soft:#9aa5b1;--line:#39424d;--paper:#14181d;
--heat:#6fb6ff;--cold:#ff9a6b;
--c0:#63a9f5;--c1:#f08a4b;--c2:#5cc27c;--c3:#b98ae8;
--c4:#dcb43a;--c5:#ec74a6;--c6:#4fc3cf;--c7:#a6adb5}}
@media print{:root{--ink:#000;--soft:#444;--line:#ccc;--paper:#fff;
--heat:#0b5fb0;--cold:#b3431c;
--c0:#1f6fc0;--c1:#c8541a;--c2:#23813f;--c3:#8147b5;
--c4:#a87d00;--c5:#c0326f;--c6:#0d8490;--c7:#62666b}}
svg{font:11px system-ui,-apple-system,"Segoe UI",sans-serif}
svg text{fill:var(--soft)}
svg .title{fill:var(--ink);font-size:12px;font-weight:600}
svg .frame{fill:none;stroke:var(--line)}
svg .grid{stroke:var(--line);fill:none}
svg .curve{fill:none;stroke-width:2;stroke-linejoin:round}
svg .thin{stroke-width:1.25;opacity:.75}
svg .paper{fill:var(--paper)}
svg .heat{fill:var(--heat)} svg .cold{fill:var(--cold)}
svg .cursor{stroke:var(--soft);stroke-dasharray:2 2}
svg .c0{stroke:var(--c0)} svg .c1{stroke:var(--c1)}
svg .c2{stroke:var(--c2)} svg .c3{stroke:var(--c3)}
svg .c4{stroke:var(--c4)} svg .c5{stroke:var(--c5)}
svg .c6{stroke:var(--c6)} svg .c7{stroke:var(--c7)}
)";

inline constexpr std::string_view kPageStyle = R"(
:root{color-scheme:light dark}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:72rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.5rem 0 .25rem}
p{margin:.5rem 0;max-width:46rem;overflow-wrap:anywhere}
.soft,figcaption{color:var(--soft);font-size:.85rem}
.note{border-left:3px solid var(--cold);padding-left:.75rem}
table{border-collapse:collapse;margin:.5rem 0}
th,td{text-align:left;vertical-align:top;padding:.15rem 1.2rem .15rem 0;
font-weight:400;overflow-wrap:anywhere}
th{color:var(--soft);white-space:nowrap}
.charts{display:grid;gap:1rem;
grid-template-columns:repeat(auto-fill,minmax(min(100%,21rem),1fr))}
.charts svg{width:100%;height:auto;display:block}
.maps{display:flex;flex-wrap:wrap;gap:.75rem 1rem;align-items:flex-start}
figure{margin:0;max-width:100%;overflow-x:auto}
figure svg{display:block}
svg[data-kind]{touch-action:pan-x pan-y;cursor:crosshair}
#tip{position:fixed;z-index:1;pointer-events:none;white-space:pre-line;
max-width:min(22rem,90vw);padding:.35rem .6rem;border-radius:.3rem;
background:var(--ink);color:var(--paper);font-size:.8rem;line-height:1.35;
overflow-wrap:anywhere}
@media print{main{max-width:none;padding:0} #tip{display:none}
figure{overflow:visible} article,figure{break-inside:avoid}
.charts svg{break-inside:avoid} h2,h3{break-after:avoid}}
)";

/// Says what is under the pointer. Numbers of maps are two signs of base 64
/// each, -1 to 1 in steps of 1/2047 of the map's full colour.
inline constexpr std::string_view kScript = R"JS(
"use strict";
(() => {
const tip = document.getElementById("tip");
const SIGNS =
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const list = id => JSON.parse(document.getElementById(id).dataset.list);
const value = (d, i) => (SIGNS.indexOf(d.v[2 * i]) * 64 +
  SIGNS.indexOf(d.v[2 * i + 1]) - 2048) / 2047 * d.full;
const where = (svg, event) => new DOMPoint(event.clientX, event.clientY)
  .matrixTransform(svg.querySelector(".plot").getScreenCTM().inverse());
const short = x => Math.abs(x) >= 1e5 || (x !== 0 && Math.abs(x) < 1e-3)
  ? x.toExponential(2) : String(+x.toPrecision(4));
const says = {
  map(d, p) {
    const c = Math.floor(p.x), r = Math.floor(p.y);
    const rows = list(d.rows), columns = list(d.columns);
    if (c < 0 || r < 0 || c >= columns.length || r >= rows.length) return "";
    let to = columns[c];
    if (d.shift !== undefined) {
      const seen = r + c - d.shift;
      to += seen >= 0 && seen < rows.length
        ? ": " + rows[seen] : ": outside of the sentence";
    }
    return d.name + "\n" + rows[r] + " \u2192 " + to + "\n" +
      value(d, r * columns.length + c).toFixed(3);
  },
  windows(d, p) {
    const r = Math.floor(p.y), rows = list(d.rows);
    if (p.x < 0 || p.x > rows.length || r < 0 || r >= rows.length) return "";
    return d.name + "\n" + rows[r] + "\n" + value(d, 2 * r).toFixed(2) +
      " to the left, " + value(d, 2 * r + 1).toFixed(2) + " to the right";
  },
  line(d, p, svg) {
    const [low, high, width] = JSON.parse(d.x);
    if (p.x < 0 || p.x > width) return "";
    const x = low + p.x / width * (high - low);
    const lines = [];
    let nearest = NaN;
    for (const [name, xs, ys] of JSON.parse(d.series)) {
      let best = 0;
      xs.forEach((other, i) => {
        if (Math.abs(other - x) < Math.abs(xs[best] - x)) best = i;
      });
      if (!(Math.abs(xs[best] - x) >= Math.abs(nearest - x)))
        nearest = xs[best];
      lines.push(name + ": " + short(ys[best]) + " at " + xs[best]);
    }
    const cursor = svg.querySelector(".cursor");
    const at = (nearest - low) / (high - low || 1) * width;
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.removeAttribute("visibility");
    return lines.join("\n");
  }
};
const show = event => {
  const svg = event.target.closest && event.target.closest("svg[data-kind]");
  const text = svg
    ? says[svg.dataset.kind](svg.dataset, where(svg, event), svg) : "";
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 18;
  tip.style.left = Math.max(8, left) + "px";
  tip.style.top = (below + tip.offsetHeight > innerHeight
    ? Math.max(8, event.clientY - tip.offsetHeight - 12) : below) + "px";
};
document.addEventListener("pointermove", show);
document.addEventListener("pointerdown", show);
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
})();
)JS";

}  // namespace seqconv::internal::report
