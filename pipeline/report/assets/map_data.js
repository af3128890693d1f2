"use strict";
// A memory map's data: columns of differences made whole, and what lives where and when.
class MapData {
  constructor(found) {
    Object.assign(this, found);
    this.order = [...new Set(this.buffers.map(each => each.tensor || each.name))];
    for (const memory of this.memories) {
      for (const key of Object.keys(memory.pieces)) {
        let last = 0;
        memory.pieces[key] = Int32Array.from(memory.pieces[key], step => last += step);
      }
      const ends = memory.held.map(row => Math.max(...row.slice(3)));
      memory.top = Math.max(0, ...ends);          // nibbles that the plan uses
      const kept = memory.held.filter(row => !this.constant(row));
      memory.arena = Math.max(0, ...kept.map(row => Math.max(...row.slice(3))));  // but for constants
      memory.parts = [[kept, "tensor"], [memory.held.filter(row => this.constant(row)), "weights"]].filter(([rows]) => rows.length)
        .map(([rows, kind]) => [kind, Math.min(...rows.map(row => row[3])), Math.max(...rows.map(row => Math.max(...row.slice(3))))]);
      memory.nibbles = 2 * memory.bytes;
      memory.after = 2 * memory.statics;          // what the program has besides, where it is known
      memory.needs = memory.top + memory.after + 2 * memory.stack;
    }
  }

  constant(row) {
    return this.buffers[row[0]].kind === "weights" && row[1] === 0 && row[2] === this.end;
  }

  bytes(nibbles) {
    return `${(nibbles / 2).toLocaleString("en")} B`;
  }

  time(at) {
    if (this.unit !== "us") {
      const track = this.tracks[0], n = MapData.place(track, at);
      const before = track.steps.slice(0, n).reduce((sum, steps) => sum + steps, 0);
      return `step ${Math.min(before + 1, this.steps).toLocaleString("en")} of ${this.steps.toLocaleString("en")}`;
    }
    const [size, name] = at > 5e6 ? [1e6, "s"] : at > 5e3 ? [1e3, "ms"] : [1, "µs"];
    return `${+(at / size).toPrecision(6)} ${name}`;
  }

  // The first bar of a track that ends after a time; its bars do not overlap.
  static place(track, time) {
    let low = 0, high = track.start.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (track.start[middle] + track.took[middle] <= time) low = middle + 1; else high = middle;
    }
    return low;
  }

  // What the first track that computes is at then.
  layer(time) {
    const track = this.tracks[0], n = Math.min(MapData.place(track, time), track.start.length - 1);
    return n < 0 ? "" : this.layers[track.layer[n]] ?? "";
  }

  // Buffers in use at a time: {buffer, size (nibbles), low, row}, from the lowest address on.
  alive(memory, time) {
    const found = [];
    for (const row of memory.held) {
      if (row[1] <= time && (time < row[2] || (row[2] === this.end && time === this.end))) {
        let size = 0;
        for (let n = 3; n < row.length; n += 2) size += row[n + 1] - row[n];
        found.push({buffer: row[0], size, low: row[3], row});
      }
    }
    return found.sort((one, other) => one.low - other.low);
  }

  // The buffer whose content is at a place, else one that has it reserved, else -1.
  at(memory, time, nibble) {
    const {buffer, low, nibbles, born, lasts} = memory.pieces;
    for (let n = buffer.length - 1; n >= 0; n--) {
      if (low[n] <= nibble && nibble < low[n] + nibbles[n] && born[n] <= time && time < born[n] + lasts[n]) return buffer[n];
    }
    let found = -1;
    for (const row of memory.held) {
      for (let n = 3; n < row.length; n += 2) {
        if (row[1] <= time && time < row[2] && row[n] <= nibble && nibble < row[n + 1]) found = row[0];
      }
    }
    return found;
  }

  span(memory, buffer) {
    return memory.held.find(row => row[0] === buffer);
  }
}
