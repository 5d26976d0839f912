// Numbers and times as text, and round places on an axis.

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
  const options = span >= 1e6
    ? { maximumFractionDigits: 3, notation: "compact" }
    : { maximumFractionDigits: Math.max(decimals, 0) };
  const format = new Intl.NumberFormat("en-US", { ...options, signDisplay: "negative" });
  return (value) => (Number.isFinite(value) ? format.format(value).replace("-", "−") : "–");
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

/** Round steps of an axis: 1, 2 or 5 times a power of ten. */
function niceStep(span, count) {
  const rough = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((m) => m * power >= rough) ?? 10);
}

function numberTicks(low, high, step) {
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k <= high / step + 1e-9; k++) ticks.push(k * step);
  return ticks;
}

const MINUTE = 60000;
const FIXED = [1000, 5000, 15000, 30000, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, 60 * MINUTE,
  180 * MINUTE, 360 * MINUTE, 720 * MINUTE, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
const MONTHLY = [1, 3, 6, 12, 24, 60, 120, 300, 600, 1200];

/** Ticks at round times, as pairs of time and label. */
function timeTicks(from, to, count) {
  const fixed = FIXED.find((step) => (to - from) / step <= count);
  if (fixed) {
    const offset = fixed >= 7 * DAY ? 4 * DAY : 0; // weeks begin on Monday
    const ticks = [];
    for (let t = Math.ceil((from - offset) / fixed) * fixed + offset; t <= to; t += fixed) {
      const date = new Date(t);
      const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
      const clock = date.toISOString().slice(11, fixed < MINUTE ? 19 : 16);
      ticks.push([t, t % DAY === 0 ? day : clock]);
    }
    return ticks;
  }
  const months = MONTHLY.find((m) => (to - from) / (m * 30.44 * DAY) <= count) ?? 2400;
  const start = new Date(from);
  const first = Math.floor((start.getUTCFullYear() * 12 + start.getUTCMonth()) / months) * months;
  const ticks = [];
  for (let m = first; ; m += months) {
    const date = new Date(0);
    date.setUTCFullYear(Math.floor(m / 12), m % 12, 1);
    if (date.getTime() > to) return ticks;
    const label = m % 12 === 0 ? String(m / 12) : MONTHS[m % 12];
    if (date.getTime() >= from) ticks.push([date.getTime(), label]);
  }
}
