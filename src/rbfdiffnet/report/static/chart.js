// A chart of one series on a canvas: history, forecasts, intervals, backtests; zoom, pan, a cursor.

const MARGIN = { right: 14, top: 12, bottom: 26 };
const LONGEST = 3.5; // steps; what is further apart is a gap, not a weekend
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [4, 2], [1, 2]];

/** Position of the value nearest to another one in an ascending array. */
function nearest(sorted, value) {
  let low = 0;
  let high = sorted.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle;
    else high = middle;
  }
  return value - sorted[low] <= sorted[high] - value ? low : high;
}

/** Position of a value in an ascending array, null where it is not in it. */
function find(sorted, value) {
  const at = nearest(sorted, value);
  return sorted[at] === value ? at : null;
}

function ring(context, x, y) {
  context.arc(x, y, 5.5, 0, 2 * Math.PI);
}

function cross(context, x, y) {
  for (const side of [-4, 4]) {
    context.moveTo(x - side, y - 4);
    context.lineTo(x + side, y + 4);
  }
}

class Chart {
  /** Callbacks: onCursor(moment or null), onPick(moment), onView(from, to). */
  constructor(canvas, overview, callbacks) {
    Object.assign(this, { canvas, overview, ...callbacks });
    this.show = { models: new Set(), levels: new Set(), backtest: false, anomalies: false, outliers: false };
    this.left = 58; // room for the labels of values
    this.cursor = null; // position among all moments
    this.picked = null; // time of the forecast that is explained
    this.mark = null; // a time to point at
    new ResizeObserver(() => this.redraw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    listen(this);
  }

  /** Draw a series: {dates, times, y, ahead: {times, models}, windows: [{times, models}], anomalies: {times}, outliers}. */
  setSeries(data) {
    this.data = data;
    this.moments = Float64Array.from(new Set([...data.times, ...data.ahead.times])).sort();
    this.cursor = this.picked = null;
    this.mark = null;
    const gaps = this.moments.slice(1).map((time, i) => time - this.moments[i]).sort();
    this.gap = gaps[gaps.length >> 1] || (data.dates ? DAY : 1);
    const first = this.moments[0] - this.gap;
    const last = this.moments.at(-1) + this.gap;
    this.limits = [first, last];
    this.latest();
  }

  latest() {
    const ahead = this.data.ahead.times.length;
    const steps = Math.max(Math.min(Math.max(6 * ahead, 60), this.width() / 3), 2.5 * ahead);
    const first = Math.max(0, this.moments.length - Math.round(steps));
    this.view(this.moments[first] - this.gap, this.limits[1]);
  }

  all() {
    this.view(...this.limits);
  }

  view(from, to) {
    const [low, high] = this.limits;
    const span = Math.min(Math.max(to - from, 4 * this.gap), high - low);
    this.from = Math.min(Math.max(from, low), high - span);
    this.to = this.from + span;
    this.onView(this.from, this.to);
    this.redraw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.view(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share) {
    const shift = share * (this.to - this.from);
    this.view(this.from + shift, this.to + shift);
  }

  /** Move the cursor to a moment, and the view where it would leave it. */
  setCursor(position) {
    this.cursor = Math.min(Math.max(position, 0), this.moments.length - 1);
    const time = this.moments[this.cursor];
    const span = this.to - this.from;
    if (time < this.from) this.view(time - 0.1 * span, time + 0.9 * span);
    if (time > this.to) this.view(time - 0.9 * span, time + 0.1 * span);
    this.onCursor(this.moment(this.cursor));
    this.redraw();
  }

  moment(position) {
    const time = this.moments[position];
    return { time, past: find(this.data.times, time), ahead: find(this.data.ahead.times, time) };
  }

  pick(position = this.cursor) {
    if (position === null) return;
    const moment = this.moment(position);
    if (moment.ahead === null) return;
    this.picked = moment.time;
    this.onPick(moment);
    this.redraw();
  }

  setCursorQuietly(position) {
    if (position === this.cursor) return;
    this.cursor = position;
    this.onCursor(this.moment(position));
    this.redraw();
  }

  leave() {
    this.cursor = null;
    this.onCursor(null);
    this.redraw();
  }

  // Drawing --------------------------------------------------------------------------------------

  width() {
    return this.canvas.clientWidth - this.left - MARGIN.right;
  }

  x(time) {
    return this.left + ((time - this.from) / (this.to - this.from)) * this.width();
  }

  time(x) {
    return this.from + ((x - this.left) / this.width()) * (this.to - this.from);
  }

  redraw() {
    if (this.pending || !this.data) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
      this.drawOverview();
    });
  }

  /** A context in CSS pixels, sharp on any screen, and a function that looks colors up. */
  prepare(canvas) {
    const ratio = devicePixelRatio || 1;
    const { clientWidth, clientHeight } = canvas;
    canvas.width = Math.round(clientWidth * ratio);
    canvas.height = Math.round(clientHeight * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.lineJoin = "round";
    context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    return { context, color, clientWidth, clientHeight };
  }

  /** Everything that is switched on, widest intervals first: {times, model, band or point, past, before}. */
  layers() {
    const { data, show } = this;
    const found = [];
    const blocks = [...(show.backtest ? data.windows : []), data.ahead];
    for (const block of blocks) {
      const { times } = block;
      const before = this.valueBefore(times[0]);
      for (const model of block.models) {
        if (!show.models.has(model.name)) continue;
        const past = block !== data.ahead;
        for (const band of model.bands.toReversed()) {
          if (show.levels.has(band.level)) found.push({ times, model, band, past, before });
        }
        found.push({ times, model, point: model.point, past, before });
      }
    }
    return found;
  }

  /** The last value known before a time, if that is near enough for a line: [time, value], or null. */
  valueBefore(time) {
    const { times, y } = this.data;
    for (let i = times.length - 1; i >= 0 && time - times[i] <= LONGEST * this.gap; i--) {
      if (times[i] < time && Number.isFinite(y[i])) return [times[i], y[i]];
    }
    return null;
  }

  /** Lowest and highest value in view; down to zero where that is not far. */
  extent(layers) {
    let low = Infinity;
    let high = -Infinity;
    const look = (times, values) => {
      for (let i = 0; i < times.length; i++) {
        if (times[i] < this.from || times[i] > this.to || !Number.isFinite(values[i])) continue;
        low = Math.min(low, values[i]);
        high = Math.max(high, values[i]);
      }
    };
    look(this.data.times, this.data.y);
    for (const { times, band, point } of layers) {
      for (const values of band ? [band.low, band.high] : [point]) look(times, values);
    }
    if (low > high) return [0, 1];
    if (low === high) return [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
    if (low >= 0 && low < 0.4 * high) return [0, high * 1.06];
    const pad = 0.06 * (high - low);
    return [low - pad, high + pad];
  }

  draw() {
    const { context, color, clientWidth, clientHeight } = this.prepare(this.canvas);
    const layers = this.layers();
    const [low, high] = this.extent(layers);
    const bottom = clientHeight - MARGIN.bottom;
    this.y = (value) => bottom - ((value - low) / (high - low)) * (bottom - MARGIN.top);

    context.fillStyle = color("quiet");
    context.strokeStyle = color("grid");
    context.textAlign = "right";
    context.textBaseline = "middle";
    const step = niceStep(high - low, (bottom - MARGIN.top) / 56);
    const format = tickFormat(step, Math.max(Math.abs(low), Math.abs(high)));
    const labels = numberTicks(low, high, step).map((tick) => [tick, format(tick)]);
    const widths = labels.map(([, label]) => Math.ceil(context.measureText(label).width));
    this.left = Math.max(44, Math.max(...widths) + 14);
    for (const [tick, label] of labels) {
      const y = Math.round(this.y(tick)) + 0.5;
      this.segment(context, this.left, y, clientWidth - MARGIN.right, y);
      context.fillText(label, this.left - 8, y);
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    const count = this.width() / 90;
    const ticks = this.data.dates
      ? timeTicks(this.from, this.to, count)
      : numberTicks(this.from, this.to, Math.max(1, niceStep(this.to - this.from, count)))
        .map((time) => [time, String(time)]);
    for (const [time, label] of ticks) {
      const half = context.measureText(label).width / 2;
      const x = Math.min(this.x(time), clientWidth - half - 2);
      context.fillText(label, x, bottom + 8);
      this.segment(context, this.x(time), bottom, this.x(time), bottom + 4);
    }

    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.width() + 1, bottom + 7); // room for marks at the lowest value
    context.clip();
    const width = this.width() / ((this.to - this.from) / this.gap);
    context.strokeStyle = color("quiet");
    context.globalAlpha = 0.5;
    const blocks = [this.data.ahead, ...(this.show.backtest ? this.data.windows : [])];
    for (const block of blocks) {
      const x = this.x(block.times[0] - this.gap / 2);
      context.setLineDash(block === this.data.ahead ? [] : [2, 4]);
      this.segment(context, x, MARGIN.top, x, bottom);
    }
    context.strokeStyle = color("model-4");
    context.setLineDash([4, 3]);
    context.globalAlpha = 1;
    const marked = this.x(this.mark ?? NaN);
    this.segment(context, marked, MARGIN.top, marked, bottom);
    context.setLineDash([]);

    for (const layer of layers.filter(({ band }) => band)) this.drawBand(context, color, layer);
    this.drawLine(context, this.data.times, this.data.y, color("history"), 1.4, [], width > 9 ? 2 : 0);
    if (this.show.anomalies) this.drawMarks(context, color("bad"), this.data.anomalies.times, ring);
    if (this.show.outliers) this.drawMarks(context, color("model-1"), this.data.outliers, cross);
    for (const { times, model, point, past, before } of layers.filter((layer) => layer.point)) {
      context.globalAlpha = past ? 0.75 : 1;
      const dot = width > 9 || times.length === 1 ? 2.6 : 0;
      const ink = color(`model-${model.hue}`);
      this.drawLine(context, times, point, ink, past ? 1.3 : 2.2, DASHES[model.hue], dot, before);
    }
    context.globalAlpha = 1;
    this.drawCursor(context, color, bottom);
    context.restore();
  }

  segment(context, x0, y0, x1, y1) {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }

  /** A line through values, that begins at the value before them if there is one. */
  drawLine(context, times, values, color, width, dash, dot, before = null) {
    const longest = LONGEST * this.gap;
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    let last = before ? before[0] : NaN;
    if (before) context.moveTo(this.x(before[0]), this.y(before[1]));
    for (let i = 0; i < times.length; i++) {
      if (!Number.isFinite(values[i])) continue;
      const near = times[i] - last <= longest;
      context[near ? "lineTo" : "moveTo"](this.x(times[i]), this.y(values[i]));
      last = times[i];
    }
    context.stroke();
    context.setLineDash([]);
    context.lineWidth = 1;
    if (!dot) return;
    for (let i = 0; i < times.length; i++) this.dot(context, times[i], values[i], dot);
  }

  dot(context, time, value, radius) {
    if (!Number.isFinite(value) || time < this.from - this.gap || time > this.to + this.gap) return;
    context.beginPath();
    context.arc(this.x(time), this.y(value), radius, 0, 2 * Math.PI);
    context.fill();
  }

  /** Mark values of the past at some times. */
  drawMarks(context, ink, times, shape) {
    context.strokeStyle = ink;
    context.lineWidth = 1.8;
    for (const time of times) {
      const at = find(this.data.times, time);
      if (at === null || time < this.from - this.gap || time > this.to + this.gap) continue;
      context.beginPath();
      shape(context, this.x(time), this.y(this.data.y[at]));
      context.stroke();
    }
    context.lineWidth = 1;
  }

  drawBand(context, color, { times, model, band, past, before }) {
    const good = [...times.keys()].filter((i) => Number.isFinite(band.low[i] + band.high[i]));
    if (!good.length) return;
    context.fillStyle = color(`model-${model.hue}`);
    context.globalAlpha = past ? 0.1 : 0.16;
    context.beginPath();
    // One step alone still has a width.
    const side = good.length === 1 && !before ? 4 : 0;
    if (before) context.moveTo(this.x(before[0]), this.y(before[1]));
    for (const i of good) context.lineTo(this.x(times[i]) + side, this.y(band.high[i]));
    for (const i of good.toReversed()) context.lineTo(this.x(times[i]) + side, this.y(band.low[i]));
    if (side) {
      context.lineTo(this.x(times[good[0]]) - side, this.y(band.low[good[0]]));
      context.lineTo(this.x(times[good[0]]) - side, this.y(band.high[good[0]]));
    }
    context.fill();
    context.globalAlpha = 1;
  }

  drawCursor(context, color, bottom) {
    const { data, show } = this;
    const model = data.ahead.models[0];
    const chosen = this.picked === null ? -1 : data.ahead.times.indexOf(this.picked);
    if (chosen >= 0 && model && show.models.has(model.name)) {
      context.strokeStyle = color(`model-${model.hue}`);
      context.lineWidth = 2;
      context.beginPath();
      context.arc(this.x(this.picked), this.y(model.point[chosen]), 7, 0, 2 * Math.PI);
      context.stroke();
      context.lineWidth = 1;
    }
    if (this.cursor === null) return;
    const { time, past, ahead } = this.moment(this.cursor);
    context.strokeStyle = color("quiet");
    this.segment(context, this.x(time), MARGIN.top, this.x(time), bottom);
    context.fillStyle = color("history");
    if (past !== null) this.dot(context, time, data.y[past], 4);
    if (ahead === null) return;
    for (const { name, hue, point } of data.ahead.models) {
      if (!show.models.has(name)) continue;
      context.fillStyle = color(`model-${hue}`);
      this.dot(context, time, point[ahead], 4);
    }
  }

  /** The whole series, small, with the part that is in view. */
  drawOverview() {
    const { context, color, clientHeight } = this.prepare(this.overview);
    const { times, y, ahead } = this.data;
    const [first, last] = this.limits;
    const model = ahead.models[0];
    const known = [...y, ...(model?.point ?? [])].filter(Number.isFinite);
    const low = known.reduce((a, b) => Math.min(a, b), Infinity);
    const span = known.reduce((a, b) => Math.max(a, b), -Infinity) - low || 1;
    const place = (time) => this.left + ((time - first) / (last - first)) * this.width();
    const height = (value) => clientHeight - 3 - ((value - low) / span) * (clientHeight - 6);
    const path = (at, values, ink) => {
      context.strokeStyle = ink;
      context.beginPath();
      at.forEach((time, i) => Number.isFinite(values[i]) && context.lineTo(place(time), height(values[i])));
      context.stroke();
    };
    context.fillStyle = color("hover");
    const left = place(this.from);
    const width = place(this.to) - left;
    context.fillRect(left, 0, width, clientHeight);
    context.globalAlpha = 0.55;
    path(times, y, color("history"));
    context.globalAlpha = 1;
    if (model) {
      const before = this.valueBefore(ahead.times[0]);
      const [time, value] = before ? [[before[0]], [before[1]]] : [[], []];
      path([...time, ...ahead.times], [...value, ...model.point], color(`model-${model.hue}`));
    }
    context.strokeStyle = color("quiet");
    context.strokeRect(left + 0.5, 0.5, Math.max(width - 1, 2), clientHeight - 1);
  }
}
