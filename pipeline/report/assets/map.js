"use strict";
// A memory map that answers: pointer, touch and keyboard.
(() => {
  const canvas = document.getElementById("map");
  if (!canvas) return;
  const data = new MapData(JSON.parse(document.getElementById("map-data").textContent));
  const drawing = new MapDrawing(canvas, data);
  const said = document.getElementById("map-said"), list = document.getElementById("map-alive");
  const pick = document.getElementById("map-memory"), hint = said.textContent;
  const least = data.end / 2000;
  let held = null, whole = false;

  function fit(everything) {  // the whole memory, or what of it is in use
    whole = everything;
    const memory = drawing.memory;
    drawing.low = 0;
    drawing.high = everything ? Math.max(memory.nibbles, memory.needs) : Math.max(memory.arena * 1.06, 1);
    button("scale").textContent = everything ? "Arena only" : "Whole memory";
  }

  function move(begin, span) {
    span = Math.min(Math.max(span, least), data.end);
    drawing.from = Math.min(Math.max(begin, 0), data.end - span);
    drawing.to = drawing.from + span;
    drawing.draw();
  }

  function zoom(factor, around = drawing.cursor ?? (drawing.from + drawing.to) / 2) {
    move(around - (around - drawing.from) * factor, (drawing.to - drawing.from) * factor);
  }

  function tell(buffer, time) {
    const each = data.buffers[buffer], row = data.span(drawing.memory, buffer);
    if (!each || !row) { said.textContent = hint; return; }
    let size = 0;
    for (let n = 3; n < row.length; n += 2) size += row[n + 1] - row[n];
    const name = each.tensor || each.name, shape = `${each.shape.join("×")} of ${each.bits} bits`;
    const from = row[1] === 0 ? "the start" : `${data.time(row[1])} (${data.layer(row[1])})`;
    const to = row[2] === data.end ? "the end" : `${data.time(row[2] - 1)} (${data.layer(row[2] - 1)})`;
    said.textContent = `${name}: ${data.bytes(size)} from byte ${(row[3] / 2).toLocaleString("en")} on, for ${shape}. ` +
      `Lives from ${from} to ${to}: ${each.why}.`;
  }

  function show(time) {  // what lives then
    const rows = data.alive(drawing.memory, time);
    list.replaceChildren();
    for (const {buffer, size, low} of rows) {
      const row = list.insertRow(), each = data.buffers[buffer];
      const chip = document.createElement("span");
      chip.className = `chip ${each.kind}`;
      row.insertCell().append(chip, ...broken(each.tensor || each.name));
      for (const text of [data.bytes(size), (low / 2).toLocaleString("en")]) row.insertCell().textContent = text;
      row.insertCell().append(...broken(each.why));
      row.lastElementChild.className = "text";
      if (buffer === drawing.chosen) row.className = "chosen";
    }
    document.getElementById("map-when").textContent = `${data.layer(time) || "between layers"}, ${data.time(time)}`;
  }

  function choose(time, buffer) {
    drawing.cursor = Math.min(Math.max(time, 0), data.end - 1e-6);
    drawing.chosen = buffer;
    tell(buffer, drawing.cursor);
    show(drawing.cursor);
    if (drawing.cursor < drawing.from || drawing.cursor > drawing.to) move(drawing.cursor - (drawing.to - drawing.from) / 2, drawing.to - drawing.from);
    else drawing.draw();
    document.dispatchEvent(new CustomEvent("layer", {detail: data.layer(drawing.cursor)}));
  }

  function toPeak() {
    const middle = (data.peak.begin + data.peak.stop) / 2;
    choose(middle, data.alive(drawing.memory, middle)[0]?.buffer ?? -1);
  }

  function besides(step) {  // the buffer above or below, of those that live now
    const rows = data.alive(drawing.memory, drawing.cursor ?? 0);
    const now = rows.findIndex(row => row.buffer === drawing.chosen);
    const next = rows[Math.min(Math.max(now + step, 0), rows.length - 1)];
    if (next) choose(drawing.cursor ?? 0, next.buffer);
  }

  function along(step) {  // to the bar of the core before or behind
    const track = data.tracks[0], count = track.start.length;
    const now = drawing.cursor === null ? (step > 0 ? -1 : count) : MapData.place(track, drawing.cursor);
    const n = Math.min(Math.max(now + step, 0), count - 1), time = track.start[n] + track.took[n] / 2;
    const rows = data.alive(drawing.memory, time);
    const same = rows.some(row => row.buffer === drawing.chosen);
    choose(time, same ? drawing.chosen : rows[0]?.buffer ?? -1);
  }

  const button = name => document.querySelector(`[data-map=${name}]`);
  const keys = {
    ArrowLeft: () => along(-1), ArrowRight: () => along(1), ArrowUp: () => besides(1), ArrowDown: () => besides(-1),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => { fit(whole); move(0, data.end); },
    p: toPeak, s: () => { fit(!whole); drawing.draw(); },
  };
  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  for (const [name, key] of [["in", "+"], ["out", "-"], ["all", 0], ["peak", "p"], ["scale", "s"]]) button(name).addEventListener("click", () => keys[key]());

  canvas.addEventListener("wheel", event => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;  // the page scrolls
    event.preventDefault();
    zoom(Math.exp(event.deltaY / 400), drawing.time(event.offsetX));
  }, {passive: false});
  canvas.addEventListener("pointerdown", event => {
    held = {x: event.offsetX, from: drawing.from, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    const time = drawing.time(event.offsetX), inside = event.offsetX >= drawing.left && event.offsetY < drawing.bottom;
    if (held) {
      held.moved ||= Math.abs(event.offsetX - held.x) > 4;
      if (held.moved) move(held.from - (event.offsetX - held.x) / (canvas.clientWidth - drawing.left) * (drawing.to - drawing.from), drawing.to - drawing.from);
    } else if (inside && drawing.cursor === null) {
      const buffer = data.at(drawing.memory, time, drawing.nibble(event.offsetY));
      if (buffer !== drawing.chosen) { drawing.chosen = buffer; tell(buffer, time); drawing.draw(); }
    }
  });
  canvas.addEventListener("pointerup", event => {
    if (held && !held.moved) {
      const time = drawing.time(event.offsetX);
      choose(time, data.at(drawing.memory, time, drawing.nibble(event.offsetY)));
    }
    held = null;
  });
  canvas.addEventListener("dblclick", () => keys[0]());
  pick?.addEventListener("change", () => {
    drawing.memory = data.memories[pick.selectedIndex]; drawing.chosen = -1; drawing.cursor = null;
    fit(whole); drawing.draw();
  });
  document.addEventListener("chosen-layer", event => { drawing.layer = event.detail; drawing.draw(); });

  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", () => drawing.draw());
  new ResizeObserver(() => drawing.draw()).observe(canvas);
  const memory = drawing.memory;
  fit(memory.arena > 0.3 * memory.nibbles);
  show((data.peak.begin + data.peak.stop) / 2);
  drawing.draw();
})();
