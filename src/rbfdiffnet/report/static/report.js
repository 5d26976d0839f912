// The page: texts and tables at once, then the numbers, then the chart of the chosen series.

const facts = JSON.parse(document.getElementById("facts").textContent);
const byId = (id) => document.getElementById(id);
const count = (n, word) => `${n.toLocaleString("en-US")} ${word}${n === 1 ? "" : word.endsWith("s") ? "" : "s"}`;
const hues = new Map(facts.models.map((model, i) => [model.name, i % 6]));
const fallbacks = new Map(facts.notes.filter((note) => note.fallback).map((note) => [note.series, note]));

let numbers, history, ahead, backtest, terms, chart, list, current;

// Texts and tables ---------------------------------------------------------------------------------

function writeVerdict() {
  byId("lead").textContent = facts.verdict.lead;
  byId("more").textContent = facts.verdict.more.join(" ");
  byId("figures").replaceChildren(...facts.verdict.figures.map(({ number, label, tone }) =>
    element("div", {}, element("dt", {}, label), element("dd", { className: tone }, number))));
}

const share = (value) => (value === null ? "–" : `${(100 * value).toFixed(1).replace("-", "−")} %`);

function writeAccuracy() {
  const { scores } = facts;
  if (!scores) return;
  byId("accuracy").hidden = false;
  byId("accuracy-text").textContent = `${count(scores.rows, "value")} in up to ${count(scores.windows, "window")} of up to `
    + `${count(scores.steps, "step")} at the ends of the series, each forecast from what came before. The best is bold.`;
  const levels = [...new Set(scores.models.flatMap((model) => Object.keys(model.coverage)))].sort((a, b) => a - b);
  const columns = [
    ["MASE", (m) => m.MASE, (v) => v?.toFixed(3) ?? "–", Math.abs],
    ["RMSSE", (m) => m.RMSSE, (v) => v?.toFixed(3) ?? "–", Math.abs],
    ["MAE", (m) => m.MAE, formatNumber, Math.abs],
    ["Bias", (m) => m["relative bias"], share, Math.abs],
    ...levels.map((level) => [`In ${level}\u00a0%`, (m) => m.coverage[level] ?? null, share, (v) => Math.abs(v - level / 100)]),
    ["Best on", (m) => m.best, share, (v) => -v],
  ];
  const lowest = columns.map(([, value, , loss]) => Math.min(...scores.models.map(value).filter((v) => v !== null).map(loss)));
  const rows = scores.models.map((model) => element("tr", {},
    element("th", { scope: "row", className: "text" }, model.name),
    ...columns.map(([, value, format, loss], j) => {
      const own = value(model);
      const best = scores.models.length > 1 && own !== null && loss(own) === lowest[j];
      return element("td", { className: best ? "best" : "" }, format(own));
    })));
  byId("accuracy").querySelector(".scroll").replaceChildren(table(["Model", ...columns.map(([name]) => name)], rows));
  const naive = facts.season > 1 ? `the value one season (${facts.season} steps) before` : "the value before";
  const legend = {
    MASE: `mean absolute error, over that of ${naive} in the training values; mean over series; below 1 is good`,
    RMSSE: "root mean squared error, over that of the value before; mean over series",
    MAE: "mean absolute error in units of the series; series with large values decide it",
    Bias: "how much too high (+) or too low (−) on average, of the mean size of the values",
    ...(levels.length ? { [`In ${levels[0]}\u00a0%`]: "share of actual values inside the interval; its level would be ideal" } : {}),
    "Best on": "share of series on which the model had the lowest mean absolute error",
  };
  byId("legend").replaceChildren(...Object.entries(legend).flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]));
}

function writeNotes() {
  const own = facts.notes.filter((note) => note.fallback);
  const other = facts.notes.filter((note) => !note.fallback);
  byId("notes-text").textContent = own.length
    ? `${count(own.length, "series")} could not be modeled and got a simple forecast instead.`
    : "Every series was modeled; none got a fallback.";
  if (own.length) writeRows(byId("fallbacks"), own);
  byId("remarks").hidden = !other.length;
  byId("remarks").querySelector("summary").textContent = `${count(other.length, "other remark")}`;
  byId("remarks").addEventListener("toggle", () => writeRows(byId("remarks").querySelector("div"), other), { once: true });
}

function writeRows(root, notes, most = 100) {
  const rows = notes.slice(0, most).map((note) => element("tr", {},
    element("td", { className: "text" }, note.series === null ? note.id : linkButton(note.id, () => goToSeries(note.series))),
    element("td", { className: "text" }, note.problem),
    element("td", { className: "text" }, note.action)));
  const head = ["Series", "What was found", "What was done"].map((text) => element("th", { scope: "col", className: "text" }, text));
  root.replaceChildren(scrolled(element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows))));
  if (notes.length <= most) return;
  const more = element("button", { type: "button" }, `Show ${Math.min(notes.length - most, 400)} more of ${notes.length - most}`);
  more.addEventListener("click", () => writeRows(root, notes, most + 400));
  root.append(more);
}

function writeExtremes(mase) {
  const scored = [...mase.keys()].filter((i) => Number.isFinite(mase[i])).sort((a, b) => mase[a] - mase[b]);
  if (scored.length < 2) return;
  byId("extremes").hidden = false;
  const most = Math.min(8, scored.length >> 1);
  byId("extremes-text").textContent = `By MASE of ${facts.main}; below 1 is better than ${facts.season > 1 ? "seasonal naive" : "the value before"} was on the training values.`;
  const scale = Math.max(...scored.slice(-most).map((i) => mase[i]));
  const ranking = (chosen) => element("ol", { className: "ranking" }, ...chosen.map((i) => {
    const bar = element("i", { className: mase[i] > 1 ? "minus" : "" });
    bar.style.width = `${(100 * mase[i]) / scale}%`;
    return element("li", {}, linkButton(facts.ids[i], () => goToSeries(i)),
      element("span", { className: "bar", "aria-hidden": "true" }, bar), element("span", {}, mase[i].toFixed(2)));
  }));
  byId("worst").replaceChildren(element("h3", {}, "Worst"), ranking(scored.slice(-most).reverse()));
  byId("best").replaceChildren(element("h3", {}, "Best"), ranking(scored.slice(0, most)));
}

function writeExtent() {
  const [first, last] = facts.span.map((time) => formatTime(time, facts.dates));
  const texts = [count(facts.ids.length, "series"), `history from ${first}`, `to ${last}`, `${count(facts.steps, "step")} ahead`];
  byId("extent").replaceChildren(...texts.flatMap((text, i) => [i === 0 ? "" : i === 2 ? " " : " · ", element("span", { className: "nowrap" }, text)]));
  const parts = ["Numbers are kept with four to five digits."];
  if (facts.cut) parts.unshift(`Of long histories the latest ${facts.cut.toLocaleString("en-US")} values are shown.`);
  const { series, left_out: left } = facts.explained;
  if (series.length) parts.push(`Forecasts of ${count(series.length, "series")} are explained${left ? `; those of ${left} more did not fit` : ""}.`);
  parts.push("Everything is in this file; it loads nothing from anywhere.");
  byId("about").textContent = parts.join(" ");
}

// One series ---------------------------------------------------------------------------------------

/** Forecasts of a series by model, from rows of a table. */
function modelsOf(source, series, from = 0, to = Infinity) {
  return facts.models.filter((model) => source.has(model.name)).map(({ name, levels }) => ({
    name,
    hue: hues.get(name),
    point: source.column(series, name).subarray(from, to),
    bands: levels.filter((level) => source.has(`${name}-lo-${level}`)).map((level) => ({
      level,
      low: source.column(series, `${name}-lo-${level}`).subarray(from, to),
      high: source.column(series, `${name}-hi-${level}`).subarray(from, to),
    })),
  }));
}

function windowsOf(series) {
  if (!backtest) return [];
  const cutoffs = backtest.times(series, "cutoff");
  const times = backtest.times(series);
  const starts = [...cutoffs.keys()].filter((i) => i === 0 || cutoffs[i] !== cutoffs[i - 1]);
  return starts.map((start, k) => {
    const end = starts[k + 1] ?? cutoffs.length;
    return { cutoff: cutoffs[start], times: times.subarray(start, end), models: modelsOf(backtest, series, start, end) };
  });
}

function showSeries(series) {
  current = {
    series,
    dates: facts.dates,
    times: history.times(series),
    y: history.column(series, facts.target),
    ahead: { times: ahead.times(series), models: modelsOf(ahead, series) },
    windows: windowsOf(series),
  };
  const known = [...current.y, ...current.ahead.models.flatMap((model) => [...model.point])].filter(Number.isFinite);
  const [low, high] = known.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  current.format = numberFormat(high - low, Math.max(Math.abs(low), Math.abs(high)));
  byId("name").textContent = facts.ids[series];
  const canvas = byId("chart");
  canvas.setAttribute("aria-label", `Chart of ${facts.ids[series]}: ${count(current.times.length, "value")}, ${count(current.ahead.times.length, "step")} ahead`);
  canvas.dataset.series = facts.ids[series];
  const note = fallbacks.get(series);
  byId("badge").hidden = !note;
  byId("badge").textContent = note ? `Fallback: ${note.problem}; ${note.action}` : "";
  byId("explanation").hidden = true;
  chart.setSeries(current);
  writeScores(series);
  writeValues();
}

function writeScores(series) {
  if (!facts.scores) return;
  const parts = facts.scores.models.map(({ name }) => {
    const [mase] = numbers.get(`mase/${name}`, series, series + 1);
    const [mae] = numbers.get(`mae/${name}`, series, series + 1);
    const text = Number.isFinite(mae) ? `${Number.isFinite(mase) ? `MASE ${mase.toFixed(2)}, ` : ""}MAE ${formatNumber(mae)}` : "not backtested";
    return element("span", {}, element("strong", {}, name), ` ${text}`);
  });
  byId("scores").replaceChildren(element("span", { className: "quiet" }, "In backtests of this series:"), ...parts);
}

function writeValues() {
  const { times, models } = current.ahead;
  const columns = models.flatMap(({ name, point, bands }) => [
    [name, point],
    ...bands.flatMap(({ level, low, high }) => [[`${level} % from`, low], ["to", high]]),
  ]);
  const rows = [...times].slice(0, 500).map((time, i) => element("tr", {},
    element("th", { scope: "row" }, formatTime(time, facts.dates)),
    ...columns.map(([, values]) => element("td", {}, current.format(values[i])))));
  byId("values").querySelector("div").replaceChildren(table(["Time", ...columns.map(([name]) => name)], rows));
}

function goToSeries(series) {
  byId("search").value = "";
  list.filter();
  list.select(series);
  byId("explore").scrollIntoView({ block: "start" });
  byId("chart").focus({ preventScroll: true });
}

/** What is known at a moment: rows of name and text. */
function readMoment({ time, past, ahead: step }) {
  const rows = [];
  if (past !== null) rows.push([facts.target, current.format(current.y[past])]);
  const add = ({ name, point, bands }, i, suffix) => {
    if (!chart.show.models.has(name)) return;
    rows.push([name + suffix, current.format(point[i])]);
    for (const { level, low, high } of bands) {
      if (chart.show.levels.has(level)) rows.push([`${level} %`, `${current.format(low[i])} to ${current.format(high[i])}`]);
    }
  };
  if (step !== null) for (const model of current.ahead.models) add(model, step, "");
  if (past !== null && chart.show.backtest) {
    const window = current.windows.findLast(({ times }) => times.includes(time));
    for (const model of window?.models ?? []) add(model, window.times.indexOf(time), ", backtest");
  }
  return rows;
}

function showTip(moment) {
  const tip = byId("tip");
  tip.hidden = moment === null;
  if (moment === null) return;
  const rows = readMoment(moment);
  const when = formatTime(moment.time, facts.dates);
  tip.replaceChildren(element("strong", {}, when), element("dl", {}, ...rows.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)])));
  const x = chart.x(moment.time);
  const { clientWidth } = byId("chart");
  const left = x > clientWidth / 2 ? x - tip.offsetWidth - 12 : x + 12;
  tip.style.transform = `translate(${Math.min(Math.max(left, 0), clientWidth - tip.offsetWidth)}px, 8px)`;
  if (document.activeElement === byId("chart")) byId("live").textContent = `${when}: ${rows.map((row) => row.join(" ")).join(", ")}`;
}

function explain(moment) {
  const { series } = current;
  const main = current.ahead.models[0];
  showExplanation(byId("explanation"), {
    moment,
    value: main.point[moment.ahead],
    text: current.format(main.point[moment.ahead]),
    main: main.name,
    terms: terms ? terms(series, moment.time) : [],
    equation: facts.explained.equations[series],
    explained: facts.explained.series.map((i) => ({ name: facts.ids[i], select: () => goToSeries(i) })),
    dates: facts.dates,
    goTo: (times) => {
      chart.marks = times;
      const span = chart.to - chart.from;
      chart.view(times[0] - span / 2, times[0] + span / 2);
      byId("chart").scrollIntoView({ block: "center" });
    },
  });
  byId("live").textContent = byId("explanation").querySelector("h2").textContent;
}

/** A function from series and time to the terms of that forecast. */
function readTerms(axis) {
  if (!numbers.has("terms/rows")) return null;
  const rows = new Table(numbers, "terms", axis, null);
  const { words } = facts.explained;
  return (series, time) => {
    const range = rows.range(series);
    const places = numbers.get("terms/place", ...range);
    const texts = ["part", "term", "nearest"].map((key) => [key, numbers.get(`terms/${key}`, ...range)]);
    const values = ["contribution", "value", "weight", "activation"].map((key) => [key, numbers.get(`terms:${key}`, ...range)]);
    return [...places.keys()].filter((i) => axis[places[i]] === time).map((i) => ({
      ...Object.fromEntries(texts.map(([key, codes]) => [key, words[codes[i]]])),
      ...Object.fromEntries(values.map(([key, own]) => [key, own[i]])),
    }));
  };
}

// Controls -----------------------------------------------------------------------------------------

function toggle(label, swatch, hue, checked, act) {
  const box = element("input", { type: "checkbox", checked });
  const mark = element("span", { className: `swatch ${swatch}`, "aria-hidden": "true" });
  mark.style.color = `var(--${hue})`;
  box.addEventListener("change", () => {
    act(box.checked);
    chart.redraw();
  });
  act(checked);
  return element("label", { className: "toggle" }, box, mark, label);
}

function writeToggles() {
  const flip = (set, name) => (on) => (on ? set.add(name) : set.delete(name));
  const { show } = chart;
  const ofModel = (model, on) => toggle(model.name, "", `model-${hues.get(model.name)}`, on, flip(show.models, model.name));
  const others = facts.models.filter((model) => !model.ahead).map((model) => ofModel(model, false)); // drawn with backtests
  const levels = [...new Set(facts.models.flatMap((model) => model.levels))].sort((a, b) => a - b);
  byId("toggles").append(
    ...facts.models.filter((model) => model.ahead).map((model, i) => ofModel(model, i < 3)),
    ...levels.map((level) => toggle(`${level} % intervals`, "band", "model-0", true, flip(show.levels, level))),
    ...(backtest ? [toggle("Backtests", "", "quiet", false, (on) => {
      show.backtest = on;
      for (const other of others) other.hidden = !on;
    })] : []),
    ...others,
  );
}

function writeOrders(mase) {
  const names = [...facts.ids.keys()];
  const byName = new Intl.Collator("en", { numeric: true });
  const score = (i) => (Number.isFinite(mase?.[i]) ? mase[i] : NaN);
  const byScore = (sign) => (a, b) => (Number.isNaN(score(a)) - Number.isNaN(score(b))) || sign * (score(a) - score(b)) || a - b;
  const orders = {
    "as given": () => names,
    "by name": () => names.toSorted((a, b) => byName.compare(facts.ids[a], facts.ids[b])),
    ...(mase ? { "worst first": () => names.toSorted(byScore(-1)), "best first": () => names.toSorted(byScore(1)) } : {}),
    ...(fallbacks.size ? { "fallbacks first": () => names.toSorted((a, b) => fallbacks.has(b) - fallbacks.has(a)) } : {}),
  };
  const texts = facts.ids.map((id) => id.toLowerCase());
  byId("order").append(...Object.keys(orders).map((name) => element("option", { value: name }, name)));
  byId("order").addEventListener("change", () => list.setOrder(orders[byId("order").value](), texts));
  list.setOrder(names, texts);
  byId("remark").hidden = !mase;
}

async function start() {
  writeVerdict();
  writeExtent();
  writeAccuracy();
  writeNotes();
  if (document.readyState === "loading") {
    await new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, { once: true }));
  }
  const packed = byId("numbers");
  numbers = await Numbers.unpack(packed.textContent, facts.sections);
  packed.remove();
  const axis = numbers.get("axis");
  const base = numbers.get("base");
  history = new Table(numbers, "history", axis, base);
  ahead = new Table(numbers, "forecasts", axis, base);
  backtest = numbers.has("backtest/rows") ? new Table(numbers, "backtest", axis, base) : null;
  terms = readTerms(axis);
  const mase = facts.scores ? numbers.get(`mase/${facts.main}`) : null;

  chart = new Chart(byId("chart"), byId("overview"), {
    onCursor: showTip,
    onPick: explain,
    onView: (from, to) => Object.assign(byId("chart").dataset, { from, to }),
  });
  const describe = (i) => {
    const score = mase && Number.isFinite(mase[i]) ? mase[i].toFixed(2) : "";
    return { text: facts.ids[i], remark: fallbacks.has(i) ? "fallback" : score };
  };
  list = new SeriesList(byId("list"), byId("search"), byId("count"), describe, showSeries);
  byId("search").addEventListener("input", () => list.filter());
  writeToggles();
  writeOrders(mase);
  byId("zoom-in").addEventListener("click", () => chart.zoom(0.7));
  byId("zoom-out").addEventListener("click", () => chart.zoom(1 / 0.7));
  byId("show-latest").addEventListener("click", () => chart.latest());
  byId("show-all").addEventListener("click", () => chart.all());
  if (mase) writeExtremes(mase);
  list.select(facts.explained.series[0] ?? 0);
  document.body.dataset.ready = "";
}

start().catch((error) => {
  byId("lead").textContent = `This browser cannot show the report (${error.message}); a newer one can.`;
  throw error;
});
