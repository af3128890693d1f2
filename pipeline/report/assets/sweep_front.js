"use strict";
// Jobs over two metrics, and the front: those that no other job is at least as good as on both, and better on one.
function frontOf(points, moreX, moreY) {
  const better = (one, other) => {
    const x = moreX ? other.x - one.x : one.x - other.x, y = moreY ? other.y - one.y : one.y - other.y;
    return x <= 0 && y <= 0 && (x < 0 || y < 0);
  };
  return points.filter(point => !points.some(other => better(other, point)));
}
function ticks(low, high, about) {  // 1, 2 or 5 times a power of ten apart
  const rough = (high - low) / about, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough), found = [];
  for (let n = Math.ceil(low / step); n * step <= high; n++) found.push(+(n * step).toPrecision(12));
  return found;
}
(() => {
  const across = document.getElementById("across"), up = document.getElementById("up"), place = document.getElementById("front"), height = 416;
  for (const pick of [across, up]) {
    for (const each of sweep.metrics) pick.add(new Option(`${each.name} (${each.more ? "more" : "less"} is better)`, each.key));
    pick.addEventListener("change", draw);
  }
  up.selectedIndex = Math.min(1, sweep.metrics.length - 1);
  const preferred = sweep.metrics.findIndex((each, n) => n > 0 && /^(latency_us|modelled_us|accuracy_int|energy_uj)$/.test(each.key));
  if (preferred > 0) up.selectedIndex = preferred;

  function make(name, attributes, text) {
    const found = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
    if (text !== undefined) found.textContent = text;
    return found;
  }

  function label(svg, dots, right, below) {  // a name beside each dot, where it covers no other name and no dot
    const taken = dots.map(dot => ({left: dot.x - 8, right: dot.x + 8, top: dot.y - 8, bottom: dot.y + 8}));
    for (const dot of dots) {
      const text = make("text", {class: "label"}, dot.name);
      svg.append(text);
      const wide = text.getComputedTextLength();
      const places = [[11, -8], [11, 16], [-11 - wide, -8], [-11 - wide, 16], [-wide / 2, -14], [-wide / 2, 24]].map(([across, up]) => ({x: dot.x + across, y: dot.y + up}));
      const free = places.find(({x, y}) => x >= 0 && x + wide <= right + 20 && y < height - below && !taken.some(box => x < box.right && x + wide > box.left && y - 11 < box.bottom && y + 3 > box.top));
      if (!free) { text.remove(); continue; }
      text.setAttribute("x", free.x);
      text.setAttribute("y", free.y);
      taken.push({left: free.x, right: free.x + wide, top: free.y - 11, bottom: free.y + 3});
    }
  }

  function draw() {
    const keys = [across.value, up.value], [moreX, moreY] = keys.map(key => sweep.metrics.find(each => each.key === key)?.more);
    const points = sweep.jobs.map((job, number) => ({number, job, x: job.values[keys[0]], y: job.values[keys[1]]}))
      .filter(point => point.job.status === "ok" && point.x !== undefined && point.y !== undefined);
    place.replaceChildren();
    if (!points.length) { place.textContent = "No job that fits has both."; return; }
    const width = place.clientWidth;
    if (!width) return;  // not laid out yet: drawn when it is
    const left = 78, bottom = 44, top = 36, right = 24;
    const svg = make("svg", {viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${keys[1]} over ${keys[0]}`});
    const span = name => {
      const values = points.map(point => point[name]), low = Math.min(...values), high = Math.max(...values);
      const room = 0.1 * (high - low) || 0.1 * Math.abs(high) || 1;
      return [low - room, high + room];
    };
    const [x0, x1] = span("x"), [y0, y1] = span("y");
    const x = value => left + (value - x0) / (x1 - x0) * (width - left - right), y = value => height - bottom - (value - y0) / (y1 - y0) * (height - bottom - top);
    for (const at of ticks(x0, x1, width > 600 ? 8 : 3)) svg.append(make("text", {x: x(at), y: height - bottom + 18, "text-anchor": "middle"}, written(keys[0], at)));
    for (const at of ticks(y0, y1, 6)) {
      svg.append(make("text", {x: left - 8, y: y(at) + 4, "text-anchor": "end"}, written(keys[1], at)));
      svg.append(make("line", {x1: left, x2: width - right, y1: y(at), y2: y(at), stroke: "var(--line)"}));
    }
    svg.append(make("text", {x: (left + width) / 2, y: height - 6, "text-anchor": "middle", class: "label"}, across.selectedOptions[0].text));
    svg.append(make("text", {x: 8, y: 14, class: "label"}, up.selectedOptions[0].text));
    const best = frontOf(points, moreX, moreY).sort((one, other) => one.x - other.x || one.y - other.y);
    if (best.length > 1) {  // as steps: what one has for sure between two jobs
      const way = best.slice(1).map((point, n) => moreX ? `V${y(point.y)}H${x(point.x)}` : `H${x(point.x)}V${y(point.y)}`);
      svg.append(make("path", {d: `M${x(best[0].x)} ${y(best[0].y)}${way.join("")}`, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5}));
    }
    for (const point of points) {
      const dot = make("circle", {cx: x(point.x), cy: y(point.y), r: 7, class: best.includes(point) ? "best" : "", tabindex: 0, role: "button", "data-job": point.number, "aria-label": point.job.name});
      dot.append(make("title", {}, `${point.job.name}: ${written(keys[0], point.x)}, ${written(keys[1], point.y)}`));
      for (const event of ["click", "focus"]) dot.addEventListener(event, () => chooseJob(point.number));
      svg.append(dot);
    }
    place.append(svg);
    if (width > 600) label(svg, points.map(point => ({x: x(point.x), y: y(point.y), name: point.job.name.replace(/\S+?=/g, "")})), width - right, bottom);
    const unfit = sweep.jobs.length - points.length;
    if (unfit) place.append(Object.assign(document.createElement("p"), {className: "sub", textContent: `Without a place here: ${sweep.jobs.filter(job => !points.some(point => point.job === job)).map(job => `${job.name}${job.why ? ` (${job.why})` : ""}`).join(", ")}.`}));
  }
  new ResizeObserver(draw).observe(place);
})();
