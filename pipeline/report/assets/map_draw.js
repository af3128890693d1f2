"use strict";
// Draws a memory map: layers on top, addresses over time, the engines below on the same axis.
class MapDrawing {
  constructor(canvas, data) {
    Object.assign(this, {canvas, data, left: 66, right: 34, top: 26, axis: 22});
    this.from = 0; this.to = data.end; this.memory = data.memories[0];
    this.low = 0; this.high = 1; this.chosen = -1; this.cursor = null; this.layer = "";
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    return name => style.getPropertyValue(`--${name}`).trim();
  }

  get turns() { return this.data.unit !== "us" && this.data.stretches.some(([, , ...layers]) => layers.length > 1); }  // of layers
  get tall() { return this.turns ? 64 : 16; }  // of the bars of an engine
  get tracks() { return (this.tall + 6) * this.data.tracks.length + 8; }
  get bottom() { return this.canvas.clientHeight - this.axis - this.tracks; }
  x(time) { return this.left + (time - this.from) / (this.to - this.from) * (this.canvas.clientWidth - this.left - this.right); }
  y(nibble) { return this.bottom - (nibble - this.low) / (this.high - this.low) * (this.bottom - this.top); }
  time(x) { return this.from + (x - this.left) / (this.canvas.clientWidth - this.left - this.right) * (this.to - this.from); }
  nibble(y) { return this.low + (this.bottom - y) / (this.bottom - this.top) * (this.high - this.low); }

  draw() {
    const {canvas, data} = this, ratio = this.ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (width <= this.left + this.right) return;  // not laid out yet: drawn when it is
    canvas.width = width * ratio; canvas.height = height * ratio;
    const pen = this.pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    this.colour = this.colours();
    const known = new Map();
    this.mix = (name, share) => {  // a colour on the panel: opaque, so that what lies in one place does not add up
      const key = `${name} ${share}`;
      if (!known.has(key)) known.set(key, MapDrawing.mixed(this.colour(name), this.colour("panel"), share));
      return known.get(key);
    };
    pen.fillStyle = this.colour("panel");
    pen.fillRect(this.left, this.top, width - this.left - this.right, this.bottom - this.top);
    pen.save();
    pen.beginPath(); pen.rect(this.left, this.top, width - this.left - this.right, height); pen.clip();
    this.drawHeld(); this.drawPieces(); this.drawBesides(); this.drawChosen();
    this.drawTracks(); this.drawPeak(); this.drawCursor();
    pen.restore();
    this.drawStretches(width);
    this.drawAxes(width, height);
    this.drawScale(width);
  }

  box(begin, stop, low, high) {
    const whole = place => Math.round(place * this.ratio) / this.ratio;  // neighbours leave no seam
    const x = whole(this.x(begin)), y = whole(this.y(high));
    return [x, y, Math.max(whole(this.x(stop)) - x, 0.6), Math.max(whole(this.y(low)) - y, 0.5)];
  }

  shade(buffer) {  // neighbours differ a little, so that one sees where one ends
    const {tensor, name} = this.data.buffers[buffer];
    return [1, 0.7, 0.85][this.data.order.indexOf(tensor || name) % 3];
  }

  drawHeld() {
    for (const row of this.memory.held) {
      const kind = this.data.buffers[row[0]].kind;
      this.pen.fillStyle = this.mix(kind, this.data.constant(row) || kind === "scratch" ? 0.85 : 0.25);
      for (let n = 3; n < row.length; n += 2) this.pen.fillRect(...this.box(row[1], row[2], row[n], row[n + 1]));
    }
  }

  drawPieces() {
    const {buffer, low, nibbles, born, lasts} = this.memory.pieces;
    const fills = this.data.buffers.map((each, n) => this.mix(each.kind, this.shade(n)));
    for (let n = 0; n < buffer.length; n++) {
      if (born[n] + lasts[n] < this.from || born[n] > this.to) continue;
      this.pen.fillStyle = fills[buffer[n]];
      this.pen.fillRect(...this.box(born[n], born[n] + lasts[n], low[n], low[n] + nibbles[n]));
    }
  }

  drawBesides() {
    const {memory, pen, data} = this;
    const parts = [["statics", memory.top, memory.top + memory.after], ["stack", memory.nibbles - 2 * memory.stack, memory.nibbles]];
    if (memory.needs > memory.nibbles) parts[1] = ["stack", memory.needs - 2 * memory.stack, memory.needs];
    for (const [kind, low, high] of parts) {
      if (high <= low) continue;
      const [x, y, wide, tall] = this.box(this.from, this.to, low, high);
      pen.fillStyle = this.colour(kind);
      pen.fillRect(x, y, wide, Math.max(tall, 1.5));
    }
    if (memory.needs > memory.nibbles && memory.nibbles < this.high) {
      const y = this.y(memory.nibbles);
      pen.fillStyle = this.colour("peak");
      pen.fillRect(this.left, y - 1, this.x(data.end) - this.left, 2);
      this.say(`the board's ${data.bytes(memory.nibbles)} end here`, this.left + 6, y - 9, "peak");
    } else {
      const free = memory.nibbles - memory.needs;
      const [, y, , tall] = this.box(this.from, this.to, memory.top + memory.after, memory.nibbles - 2 * memory.stack);
      const shown = Math.max(y, this.top), text = `free: ${data.bytes(free)}`;
      const right = this.canvas.clientWidth - this.right - pen.measureText(text).width - 14;
      if (Math.min(y + tall, this.bottom) - shown > 16 && !this.meetsPeak(right)) this.say(text, right, (shown + Math.min(y + tall, this.bottom)) / 2, "quiet");
    }
  }

  say(text, x, y, colour) {
    const pen = this.pen;
    pen.textAlign = "left"; pen.textBaseline = "middle";
    pen.fillStyle = this.colour("paper"); pen.fillRect(x, y - 9, pen.measureText(text).width + 10, 18);
    pen.fillStyle = this.colour(colour); pen.fillText(text, x + 5, y);
  }

  drawChosen() {
    const row = this.chosen >= 0 && this.data.span(this.memory, this.chosen);
    if (!row) return;
    this.pen.strokeStyle = this.colour("ink"); this.pen.lineWidth = 1.5;
    for (let n = 3; n < row.length; n += 2) this.pen.strokeRect(...this.box(row[1], row[2], row[n], row[n + 1]));
  }

  drawStretches(width) {
    const pen = this.pen, end = width - this.right;
    pen.textBaseline = "middle"; pen.textAlign = "center";
    for (const [begin, stop, first, ...more] of this.data.stretches) {
      const x = Math.max(this.x(begin), this.left), wide = Math.min(this.x(stop), end) - x;
      if (wide <= 0) continue;
      pen.fillStyle = this.colour("line");
      pen.fillRect(x, this.top - 20, 1, this.bottom - this.top + 20);
      if (this.layer === first || more.includes(this.layer)) {
        pen.fillStyle = this.colour("ink"); pen.globalAlpha = 0.15;
        pen.fillRect(x, this.top - 20, wide, this.bottom - this.top + 20);
        pen.globalAlpha = 1;
      }
      const names = more.length ? [`${first} … ${more[more.length - 1]}`, `${more.length + 1} layers`] : first.split(".").map((_, n, parts) => parts.slice(n).join("."));
      const shown = names.find(name => pen.measureText(name).width < wide - 4);
      pen.fillStyle = this.colour("ink");
      if (shown) pen.fillText(shown, x + wide / 2, this.top - 11);
    }
  }

  drawTracks() {
    const pen = this.pen, kinds = ["compute", "read", "write"], {data, ratio, tall} = this;
    const count = Math.ceil((this.canvas.clientWidth - this.right - this.left) * ratio), each = (this.to - this.from) / count;
    data.tracks.forEach((track, row) => {
      const bottom = this.bottom + 6 + (tall + 6) * row + tall;
      const busy = kinds.map(() => new Float64Array(count)), shade = new Uint8Array(count);  // of each pixel's time
      for (let n = MapData.place(track, this.from); n < track.start.length && track.start[n] < this.to; n++) {
        const stop = track.start[n] + track.took[n], share = track.took[n] ? track.busy[n] / track.took[n] : 0;
        if (this.turns) {
          this.turn(track, n, bottom);
          continue;
        }
        for (let at = Math.max(0, Math.floor((track.start[n] - this.from) / each)); at < count; at++) {
          const begin = this.from + at * each, within = Math.min(stop, begin + each) - Math.max(track.start[n], begin);
          if (within <= 0 && begin >= stop) break;
          busy[track.kind[n]][at] += Math.max(0, within) * share;
          shade[at] = track.layer[n] % 2;
        }
      }
      for (let at = 0; at < count; at++) {
        let y = bottom;
        kinds.forEach((kind, k) => {
          const high = Math.min(tall, tall * busy[k][at] / each);
          if (!high) return;
          pen.fillStyle = MapDrawing.mixed(this.colour(kind), this.colour("paper"), shade[at] ? 0.65 : 1);
          pen.fillRect(this.left + at / ratio, y - high, 1 / ratio, high);
          y -= high;
        });
      }
    });
  }

  turn(track, n, bottom) {  // layers that run in turns: a line for each, the first on top
    const line = this.tall / this.data.layers.length, x = this.x(track.start[n]), layer = track.layer[n];
    if (layer < 0) return;
    this.pen.fillStyle = this.colour("compute");
    this.pen.fillRect(x, bottom - this.tall + layer * line, Math.max(this.x(track.start[n] + track.took[n]) - x, 0.7), Math.max(0.8 * line, 2));
  }

  get peakLabel() {  // [text, from x, to x]
    const {peak} = this.data, text = `peak ${peak.bytes.toLocaleString("en")} B`, room = this.pen.measureText(text).width + 10;
    const left = Math.max(this.left + 2, Math.min(this.x(peak.begin) + 2, this.canvas.clientWidth - this.right - room));
    return [text, left, left + room];
  }

  meetsPeak(right) { return this.memory === this.data.memories[0] && this.peakLabel[2] > right; }

  drawPeak() {
    const {peak} = this.data, {memory} = this;
    if (memory !== this.data.memories[0]) return;
    const x = this.x(peak.begin), wide = Math.max(this.x(peak.stop) - x, 2), y = Math.max(this.y(memory.arena), this.top + 1);
    this.pen.strokeStyle = this.colour("peak"); this.pen.lineWidth = 2;
    this.pen.setLineDash([5, 3]);
    this.pen.strokeRect(x, y, wide, this.bottom - y);
    this.pen.setLineDash([]);
    const [text, left] = this.peakLabel;
    this.say(text, left, Math.max(y - 20, this.top) + 9, "peak");
  }

  drawScale(width) {  // all of the memory, to scale, and what of it the map shows
    const {memory, pen} = this, x = width - 20, tall = this.bottom - this.top, whole = Math.max(memory.nibbles, memory.needs);
    const y = nibble => this.bottom - nibble / whole * tall;
    const part = (kind, low, high) => { pen.fillStyle = this.colour(kind); pen.fillRect(x, y(high), 14, Math.max(y(low) - y(high), high > low ? 1 : 0)); };
    part("panel", 0, whole);
    for (const [kind, low, high] of memory.parts) part(kind, low, high);
    part("statics", memory.top, memory.top + memory.after);
    const end = Math.max(memory.nibbles, memory.needs);
    part("stack", end - 2 * memory.stack, end);
    if (memory.needs > memory.nibbles) { pen.fillStyle = this.colour("peak"); pen.fillRect(x - 3, y(memory.nibbles) - 1, 20, 2); }
    pen.strokeStyle = this.colour("line"); pen.lineWidth = 1; pen.strokeRect(x + 0.5, this.top + 0.5, 13, tall - 1);
    pen.strokeStyle = this.colour("ink"); pen.lineWidth = 2;
    pen.strokeRect(x - 2, y(Math.min(this.high, whole)), 18, y(this.low) - y(Math.min(this.high, whole)));
  }

  drawCursor() {
    if (this.cursor === null) return;
    this.pen.fillStyle = this.colour("ink");
    this.pen.fillRect(this.x(this.cursor) - 0.5, this.top, 1, this.bottom - this.top + this.tracks);
  }

  drawAxes(width, height) {
    const pen = this.pen, data = this.data;
    pen.fillStyle = this.colour("quiet"); pen.textAlign = "right"; pen.textBaseline = "middle";
    const step = MapDrawing.step((this.high - this.low) / 2 / 5);
    for (let byte = Math.ceil(this.low / 2 / step) * step; byte <= this.high / 2; byte += step) {
      const y = this.y(2 * byte);
      pen.fillRect(this.left - 5, y, 5, 1);
      pen.fillText(byte.toLocaleString("en"), this.left - 8, Math.max(y, this.top + 6));
    }
    pen.fillText("byte", this.left - 8, this.top - 11);
    data.tracks.forEach((track, row) => {
      pen.fillText({cpu: "core", io: "card", back: "card back"}[track.name] ?? track.name, this.left - 8, this.bottom + 6 + (this.tall + 6) * row + this.tall / 2);
    });
    pen.textBaseline = "bottom"; pen.textAlign = "center";
    if (data.unit !== "us") {
      pen.fillText(`${data.steps.toLocaleString("en")} steps →  wider where more is computed`, (this.left + width) / 2, height - 3);
      return;
    }
    const [size, name] = this.to - this.from > 5e6 ? [1e6, "s"] : this.to - this.from > 5e3 ? [1e3, "ms"] : [1, "µs"];
    const each = MapDrawing.step((this.to - this.from) / size / (width / 110)) * size;
    for (let at = Math.ceil(this.from / each) * each; at <= this.to; at += each) {
      const x = this.x(at);
      pen.fillRect(x, height - this.axis, 1, 5);
      if (x < width - 24) pen.fillText(`${+(at / size).toPrecision(6)} ${name}`, x, height - 2);
    }
  }

  static mixed(colour, ground, share) {  // two of #rrggbb
    const part = (text, n) => parseInt(text.slice(2 * n + 1, 2 * n + 3), 16);
    return `rgb(${[0, 1, 2].map(n => Math.round(share * part(colour, n) + (1 - share) * part(ground, n))).join(" ")})`;
  }

  static step(rough) {  // 1, 2 or 5 times a power of ten
    const power = Math.pow(10, Math.floor(Math.log10(Math.max(rough, 1e-9))));
    return [1, 2, 5, 10].map(n => n * power).find(n => n >= rough);
  }
}
