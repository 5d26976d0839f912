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

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const digits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });
const compact = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4, notation: "compact" });

function formatNumber(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return value.toExponential(3).replace("-", "−");
  return (size >= 1e6 ? compact : size >= 1000 ? whole : digits).format(value).replace("-", "−");
}

/** A way to write numbers that vary so much, with as many decimals as tell them apart. */
function numberFormat(span, most) {
  const decimals = 3 - Math.floor(Math.log10(span || most || 1));
  if (!(decimals <= 8) || most >= 1e15) return formatNumber;
  const short = span >= 1e6 ? { maximumFractionDigits: 3, notation: "compact" } : { maximumFractionDigits: Math.max(decimals, 0) };
  const format = new Intl.NumberFormat("en-US", short);
  return (value) => (Number.isFinite(value) ? format.format(value).replace(/^-0$/, "0").replace("-", "−") : "–");
}

/** The same for ticks of an axis; millions and more are short where that tells them apart. */
function tickFormat(step, most) {
  const unit = 10 ** (3 * Math.floor(Math.log10(most) / 3));
  if (most < 1e6 || most >= 1e15 || step < unit / 100) return numberFormat(1000 * step, most);
  const format = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2, notation: "compact" });
  return (value) => format.format(value).replace("-", "−");
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY = 86400000;

/** A time as in the data, which holds "days", "times" or whole numbers: 2024-03-01, 2024-03-01 14:00, 7. */
function formatTime(time, dates) {
  if (!dates) return String(time);
  const text = new Date(time).toISOString();
  if (dates === "days") return text.slice(0, 10);
  return `${text.slice(0, 10)} ${text.slice(11, time % 60000 === 0 ? 16 : 19)}`;
}

/** The other way, for dates in explanations. */
function parseTime(text, dates) {
  return dates ? Date.parse(text.length > 10 ? `${text.replace(" ", "T")}Z` : text) : Number(text);
}

/** An element with properties, attributes (those with a dash) and children; never any markup. */
function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}
