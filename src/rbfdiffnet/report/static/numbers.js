// Numbers out of the text they were packed into: three or four bytes each, all first bytes first.

class Numbers {
  static async unpack(text, sections) {
    const binary = atob(text.trim());
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Numbers(new Uint8Array(await new Response(stream).arrayBuffer()), sections);
  }

  constructor(bytes, sections) {
    this.bytes = bytes;
    this.sections = sections;
  }

  has(name) {
    return Object.hasOwn(this.sections, name);
  }

  /** Numbers of a section, from one position up to another. */
  get(name, from = 0, to = this.sections[name][2]) {
    const [kind, start, count] = this.sections[name];
    if (kind === "doubles") {
      return new Float64Array(this.bytes.slice(start + 8 * from, start + 8 * to).buffer);
    }
    const bits = new Uint32Array(to - from);
    const planes = kind === "floats" ? 3 : 4;
    for (let plane = 0; plane < planes; plane++) {
      const shift = 24 - 8 * plane;
      const at = start + plane * count + from;
      for (let i = 0; i < bits.length; i++) bits[i] |= this.bytes[at + i] << shift;
    }
    return kind === "counts" ? bits : new Float32Array(bits.buffer);
  }
}

/** Rows of all series, one series after the other. */
class Table {
  constructor(numbers, name, axis, base) {
    Object.assign(this, { numbers, name, axis, base });
    this.first = [0];
    for (const rows of numbers.get(`${name}/rows`)) this.first.push(this.first.at(-1) + rows);
  }

  range(series) {
    return [this.first[series], this.first[series + 1]];
  }

  /** Times of a series' rows, kept as steps from row to row. */
  times(series, key = "step") {
    let place = 0;
    return Float64Array.from(this.numbers.get(`${this.name}/${key}`, ...this.range(series)), (step) => {
      place = (place + step) >>> 0;
      return this.axis[place];
    });
  }

  column(series, name) {
    const values = this.numbers.get(`${this.name}:${name}`, ...this.range(series));
    return Float64Array.from(values, (value) => value + this.base[series]);
  }

  has(name) {
    return this.numbers.has(`${this.name}:${name}`);
  }
}
