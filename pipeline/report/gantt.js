"use strict";
// The tracks of a plan on a time axis: wheel zooms at the pointer, drag moves, double click resets.
(() => {
  const data = JSON.parse(document.getElementById("bars").textContent);
  const canvas = document.getElementById("tracks"), where = document.getElementById("where");
  const hint = where.textContent, left = 70, axis = 24;
  const hues = [[197, 58], [32, 60], [254, 25]];  // compute, read, write: as in the legend
  let from = 0, to = data.end, held = null;

  const unit = span => span > 5e6 ? [1e6, "s"] : span > 5e3 ? [1e3, "ms"] : [1, "µs"];
  const at = (x, width) => from + (x - left) / (width - left) * (to - from);

  function firstAfter(track, time) {  // bars of a track do not overlap: both ends are in order
    let low = 0, high = track.start.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (track.start[middle] + track.took[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = width * ratio; canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    const rows = data.tracks.length, each = (height - axis) / rows;
    const scale = (width - left) / (to - from);
    data.tracks.forEach((track, row) => {
      const top = row * each + 8, tall = each - 16;
      let covered = -1;
      for (let n = firstAfter(track, from); n < track.start.length && track.start[n] < to; n++) {
        const begin = Math.max(left, left + (track.start[n] - from) * scale);
        const end = Math.min(width, left + (track.start[n] + track.took[n] - from) * scale);
        if (end < covered) continue;  // nothing of it would be seen
        const [hue, strong] = hues[track.kind[n]];
        pen.fillStyle = `hsl(${hue} ${strong}% ${track.layer[n] % 2 ? 39 : 50}%)`;
        const high = track.took[n] ? tall * track.busy[n] / track.took[n] : tall;  // of several steps: the busy share
        pen.fillRect(begin, top + tall - high, Math.max(end - begin, 0.5), high);
        covered = begin + 0.5;
      }
      pen.fillStyle = "white"; pen.fillRect(0, top - 8, left - 1, each);
      pen.fillStyle = "#22303c"; pen.textAlign = "right"; pen.textBaseline = "middle";
      pen.fillText(track.name, left - 10, top + tall / 2);
    });
    const [size, name] = unit(to - from), rough = (to - from) / size / 8;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough) * size;
    pen.fillStyle = "#6b7b86"; pen.textAlign = "center"; pen.textBaseline = "bottom";
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const x = left + (time - from) * scale;
      pen.fillRect(x, height - axis, 1, 5);
      if (x < width - 20) pen.fillText(`${+(time / size).toPrecision(6)} ${name}`, x, height - 2);
    }
  }

  function move(begin, span) {
    span = Math.min(Math.max(span, 20), data.end);
    from = Math.min(Math.max(begin, 0), data.end - span);
    to = from + span;
    draw();
  }

  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const pointed = at(event.offsetX, canvas.clientWidth), factor = Math.exp(event.deltaY / 400);
    move(pointed - (pointed - from) * factor, (to - from) * factor);
  }, {passive: false});
  canvas.addEventListener("pointerdown", event => {
    held = {x: event.offsetX, from, span: to - from};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("dblclick", () => move(0, data.end));
  canvas.addEventListener("pointermove", event => {
    const width = canvas.clientWidth;
    if (held) return move(held.from - (event.offsetX - held.x) / (width - left) * held.span, held.span);
    const row = Math.floor(event.offsetY / ((canvas.clientHeight - axis) / data.tracks.length));
    const track = data.tracks[row], time = at(event.offsetX, width);
    const n = track ? firstAfter(track, time) : 0;
    if (!track || n >= track.start.length || track.start[n] > time) { where.textContent = hint; return; }
    const [size, name] = unit(track.took[n]), many = track.steps[n] > 1 ? `, ${track.steps[n]} steps` : "";
    where.textContent = `${track.name}: ${["computes", "reads for", "writes of"][track.kind[n]]} ` +
      `${data.layers[track.layer[n]] ?? "–"}, ${+(track.took[n] / size).toPrecision(4)} ${name} ` +
      `from ${(track.start[n] / 1e6).toFixed(6)} s${many}`;
  });
  window.addEventListener("resize", draw);
  draw();
})();
