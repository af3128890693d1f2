"use strict";
// The jobs' memory maps, small and all to one scale.
(() => {
  const place = document.getElementById("maps"), kinds = {t: ["tensor", 1], u: ["tensor", 0.7], v: ["tensor", 0.85], s: ["state", 1], a: ["sums", 1], w: ["weights", 1], x: ["scratch", 1]};
  const maps = sweep.jobs.map((job, number) => ({job, number, map: job.map})).filter(each => each.map);
  const room = map => Math.max(0, map.limit - map.weights - map.stack);  // what the board has for what is drawn
  const most = Math.max(...maps.map(({map}) => Math.max(map.bytes, Math.min(room(map), 1.25 * map.bytes))));
  const bytes = value => `${(+value.toFixed(1)).toLocaleString("en")} B`;
  const us = job => job.values.compute_us ?? job.values.modelled_us, timed = place.className && maps.every(({job}) => us(job));
  const longest = Math.max(...maps.map(({job}) => us(job)));
  if (!maps.length) place.textContent = "No job has a plan.";
  const drawings = maps.map(({job, number, map}) => {
    const figure = document.createElement("figure"), canvas = document.createElement("canvas"), caption = document.createElement("figcaption");
    figure.dataset.job = number;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Memory map of ${job.name}`);
    if (timed) canvas.style.width = `${100 * us(job) / longest}%`;
    caption.append(named(job), `: ${timed ? `${written("_us", us(job))}, ` : ""}${bytes(map.bytes)}${map.weights ? `, with ${bytes(map.weights)} of weights` : ""} of ${bytes(map.limit)}`);
    figure.append(canvas, caption);
    figure.addEventListener("click", () => chooseJob(number));
    place.append(figure);
    return [canvas, map];
  });
  function draw() {
    const style = getComputedStyle(document.documentElement), colour = name => style.getPropertyValue(`--${name}`).trim();
    for (const [canvas, map] of drawings) {
      const ratio = window.devicePixelRatio || 1, width = canvas.width = canvas.clientWidth * ratio, height = canvas.height = canvas.clientHeight * ratio;
      const pen = canvas.getContext("2d"), y = bytes => height - Math.round(bytes / most * height);
      map.rows.forEach((row, n) => {
        const low = y(map.bytes * (map.rows.length - n - 1) / map.rows.length), high = y(map.bytes * (map.rows.length - n) / map.rows.length);
        for (let begin = 0; begin < row.length;) {
          let stop = begin;
          while (row[stop] === row[begin]) stop++;
          const kind = kinds[row[begin].toLowerCase()], x = Math.round(begin / row.length * width);
          if (kind) {
            pen.globalAlpha = row[begin] === row[begin].toUpperCase() ? 0.25 : kind[1];
            pen.fillStyle = colour(kind[0]);
            pen.fillRect(x, high, Math.round(stop / row.length * width) - x, low - high);
          }
          begin = stop;
        }
      });
      pen.globalAlpha = 1;
      pen.fillStyle = colour(map.bytes > room(map) ? "peak" : "ink");
      if (room(map) <= most) pen.fillRect(0, Math.min(Math.max(y(room(map)) - ratio, 0), height - 2 * ratio), width, 2 * ratio);
    }
  }
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", draw);
  new ResizeObserver(draw).observe(place);
})();
