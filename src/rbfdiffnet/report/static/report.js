// The page: texts and tables at once, then the numbers, then the chart of the chosen series.

const facts = JSON.parse(document.getElementById("facts").textContent);
const count = (n, word) => {
  return `${n.toLocaleString("en-US")} ${word}${n === 1 || word === "series" ? "" : "s"}`;
};
const hues = new Map(facts.models.map((model, i) => [model.name, i % 6]));
const fallbacks = new Map(facts.notes.filter((note) => note.fallback).map((note) => [note.series, note]));

let numbers, history, ahead, backtest, anomalies, outliers, terms, chart, list, current;

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
    return { times: times.subarray(start, end), models: modelsOf(backtest, series, start, end) };
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
    anomalies: anomalies && {
      times: anomalies.times(series),
      low: anomalies.column(series, "low"),
      high: anomalies.column(series, "high"),
    },
    outliers: outliers ? outliers.times(series) : [],
    terms: terms ? terms(series) : [],
  };
  const points = current.ahead.models.flatMap((model) => [...model.point]);
  const known = [...current.y, ...points].filter(Number.isFinite).sort((a, b) => a - b);
  const [low, high] = [known[0] ?? 0, known.at(-1) ?? 0];
  current.format = numberFormat(high - low, Math.max(Math.abs(low), Math.abs(high)));
  byId("name").textContent = shortName(facts.ids[series]);
  byId("name").title = facts.ids[series];
  const canvas = byId("chart");
  const lengths = `${count(current.times.length, "value")}, ${count(current.ahead.times.length, "step")} ahead`;
  canvas.setAttribute("aria-label", `Chart of ${shortName(facts.ids[series])}: ${lengths}`);
  canvas.dataset.series = facts.ids[series];
  const note = fallbacks.get(series);
  byId("badge").hidden = !note;
  byId("badge").textContent = note ? `Fallback: ${note.problem}; ${note.action}` : "";
  byId("explanation").hidden = true;
  drawPortrait();
  chart.setSeries(current);
  writeScores(series);
  writeValues();
}

function drawPortrait() {
  showPortrait(byId("portrait"), {
    y: current.y,
    ahead: current.ahead.models[0].point,
    terms: current.terms,
    pictures: facts.explained.pictures,
    season: facts.season,
    dates: facts.dates,
  });
}

function writeScores(series) {
  if (!facts.scores) return;
  const parts = facts.scores.models.map(({ name }) => {
    const [mase] = numbers.get(`mase/${name}`, series, series + 1);
    const [mae] = numbers.get(`mae/${name}`, series, series + 1);
    const scaled = Number.isFinite(mase) ? `MASE ${mase.toFixed(2)}, ` : "";
    const text = Number.isFinite(mae) ? `${scaled}MAE ${formatNumber(mae)}` : "not backtested";
    return element("span", {}, element("strong", {}, name), ` ${text}`);
  });
  const title = element("span", { className: "quiet" }, "In backtests of this series:");
  byId("scores").replaceChildren(title, ...parts);
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
  const head = ["Time", ...columns.map(([name]) => name)];
  byId("values").querySelector("div").replaceChildren(table(head, rows));
}

function goToSeries(series, time = null) {
  byId("search").value = "";
  list.filter();
  list.select(series);
  if (time !== null) goToTime(time);
  byId("explore").scrollIntoView({ block: "start" });
  byId("chart").focus({ preventScroll: true });
}

/** Point at a time, in the middle of the chart. */
function goToTime(time) {
  chart.mark = time;
  const half = (chart.to - chart.from) / 2;
  chart.view(time - half, time + half);
}

/** What is known at a moment: rows of name and text. */
function readMoment({ time, past, ahead: step }) {
  const rows = [];
  if (past !== null) rows.push([facts.target, current.format(current.y[past])]);
  const unusual = current.anomalies && chart.show.anomalies ? current.anomalies.times.indexOf(time) : -1;
  if (unusual >= 0) {
    const { low, high } = current.anomalies;
    rows.push(["expected", `${current.format(low[unusual])} to ${current.format(high[unusual])}`]);
  }
  if (chart.show.outliers && current.outliers.includes(time)) rows.push(["outlier", "not learned from"]);
  const add = ({ name, point, bands }, i, suffix) => {
    if (!chart.show.models.has(name)) return;
    rows.push([name + suffix, current.format(point[i])]);
    for (const { level, low, high } of bands) {
      const text = `${current.format(low[i])} to ${current.format(high[i])}`;
      if (chart.show.levels.has(level)) rows.push([`${level} %`, text]);
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
  tip.replaceChildren(element("strong", {}, when), element("dl", {}, ...definitions(rows)));
  const x = chart.x(moment.time);
  const { clientWidth } = byId("chart");
  const left = x > clientWidth / 2 ? x - tip.offsetWidth - 12 : x + 12;
  tip.style.transform = `translate(${Math.min(Math.max(left, 0), clientWidth - tip.offsetWidth)}px, 8px)`;
  if (document.activeElement !== byId("chart")) return;
  byId("live").textContent = `${when}: ${rows.map((pair) => pair.join(" ")).join(", ")}`;
}

function explain(moment) {
  const { series } = current;
  const main = current.ahead.models[0];
  showExplanation(byId("explanation"), {
    moment,
    value: main.point[moment.ahead],
    text: current.format(main.point[moment.ahead]),
    main: main.name,
    terms: current.terms.filter((term) => term.time === moment.time && !isBeside(term)),
    equation: facts.explained.equations[series],
    explained: facts.explained.series.map((i) => ({ name: facts.ids[i], select: () => goToSeries(i) })),
    dates: facts.dates,
    goTo: (time) => {
      goToTime(time);
      byId("chart").scrollIntoView({ block: "center" });
    },
  });
  byId("live").textContent = byId("explanation").querySelector("h2").textContent;
}

/** A function from series to the terms of its forecasts. */
function readTerms(axis) {
  if (!numbers.has("terms/rows")) return null;
  const rows = new Table(numbers, "terms", axis, null);
  const { words } = facts.explained;
  return (series) => {
    const range = rows.range(series);
    const places = numbers.get("terms/place", ...range);
    const texts = ["part", "term", "nearest"].map((key) => [key, numbers.get(`terms/${key}`, ...range)]);
    const values = ["contribution", "value", "weight", "activation"]
      .map((key) => [key, numbers.get(`terms:${key}`, ...range)]);
    return [...places.keys()].map((i) => ({
      time: axis[places[i]],
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
  const ofModel = ({ name }, on) => toggle(name, "", `model-${hues.get(name)}`, on, flip(show.models, name));
  // Models without forecasts are drawn in backtests only.
  const others = facts.models.filter((model) => !model.ahead).map((model) => ofModel(model, false));
  const levels = [...new Set(facts.models.flatMap((model) => model.levels))].sort((a, b) => a - b);
  byId("toggles").append(
    ...facts.models.filter((model) => model.ahead).map((model, i) => ofModel(model, i < 3)),
    ...levels.map((level) => {
      return toggle(`${level} % intervals`, "band", "model-0", true, flip(show.levels, level));
    }),
    ...(backtest ? [toggle("Backtests", "", "quiet", true, (on) => {
      show.backtest = on;
      for (const other of others) other.hidden = !on;
    })] : []),
    ...others,
    ...(facts.anomalies?.found ? [toggle("Unusual values", "ring", "bad", true, (on) => {
      show.anomalies = on;
    })] : []),
    ...(outliers ? [toggle("Outliers, not learned from", "cross", "model-1", true, (on) => {
      show.outliers = on;
    })] : []),
  );
}

function writeOrders(mase) {
  const names = [...facts.ids.keys()];
  const byName = new Intl.Collator("en", { numeric: true });
  // Series without a score come last.
  const score = (i, missing) => (Number.isFinite(mase[i]) ? mase[i] : missing);
  const orders = {
    "as given": () => names,
    "by name": () => names.toSorted((a, b) => byName.compare(facts.ids[a], facts.ids[b])),
    ...(mase && {
      "worst first": () => names.toSorted((a, b) => score(b, -1) - score(a, -1)),
      "best first": () => names.toSorted((a, b) => score(a, 1e99) - score(b, 1e99)),
    }),
    ...(fallbacks.size && {
      "fallbacks first": () => names.toSorted((a, b) => fallbacks.has(b) - fallbacks.has(a)),
    }),
  };
  const texts = facts.ids.map((id) => (id.trim() ? id : "(blank)").toLowerCase());
  byId("order").append(...Object.keys(orders).map((name) => element("option", { value: name }, name)));
  byId("order").addEventListener("change", () => list.setOrder(orders[byId("order").value](), texts));
  list.setOrder(names, texts);
  byId("remark").hidden = !mase;
  byId("explore").classList.toggle("single", names.length === 1); // nothing to choose from
}

async function start() {
  writeVerdict();
  writeExtent();
  writeTree();
  writeAccuracy();
  writeAnomalies();
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
  anomalies = numbers.has("anomalies/rows") ? new Table(numbers, "anomalies", axis, base) : null;
  outliers = numbers.has("outliers/rows") ? new Table(numbers, "outliers", axis, base) : null;
  terms = readTerms(axis);
  const mase = facts.scores ? numbers.get(`mase/${facts.main}`) : null;

  byId("explore").hidden = false;
  chart = new Chart(byId("chart"), byId("overview"), {
    onCursor: showTip,
    onPick: explain,
    onView: (from, to) => Object.assign(byId("chart").dataset, { from, to }),
  });
  const describe = (i) => {
    const score = mase && Number.isFinite(mase[i]) ? mase[i].toFixed(2) : "";
    return { text: shortName(facts.ids[i]), title: facts.ids[i], remark: fallbacks.has(i) ? "fallback" : score };
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
  if (!facts.explained.series.length) {
    byId("invitation").textContent = "How to move in the chart";
    byId("explain-key").hidden = true;
  }
  list.select(facts.explained.series[0] ?? 0);
  byId("plain").remove(); // what is seen without a script
  addEventListener("resize", drawPortrait);
  document.body.dataset.ready = "";
}

start().catch((error) => {
  byId("lead").textContent = `This browser cannot show the report (${error.message}); a newer one can.`;
  throw error;
});
