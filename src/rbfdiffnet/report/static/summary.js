// What is said about all series: the verdict, accuracy, the best and the worst, remarks.

const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(1).replace("-", "−")} %`);

// Simple rules that forecasts are compared with.
const RULES = { SeasonalNaive: "repeats the last season", LastValue: "repeats the last value" };

function writeVerdict() {
  const { lead, more, figures } = facts.verdict;
  byId("lead").textContent = lead;
  byId("more").textContent = more.join(" ");
  byId("figures").replaceChildren(...figures.map(({ number, label, tone }) => {
    return element("div", {}, element("dt", {}, label), element("dd", { className: tone }, number));
  }));
}

function writeExtent() {
  const [first, last] = facts.span.map((time) => formatTime(time, facts.dates));
  const { tree } = facts;
  const many = tree ? `${count(tree.series, "series")} and ${count(tree.groups, "group")}` : count(facts.n_series, "series");
  const texts = [
    `${many} ·`, `history from ${first}`, `to ${last} ·`,
    `${count(facts.steps, "step")} ahead`,
  ];
  const parts = texts.flatMap((text) => [element("span", { className: "nowrap" }, text), " "]);
  byId("extent").replaceChildren(...parts);

  byId("source").textContent = facts.source;
  byId("source").hidden = !facts.source;

  const about = ["Numbers are kept with four to five digits."];
  const most = facts.cut?.toLocaleString("en-US");
  if (most) about.unshift(`Of long histories the latest ${most} values are shown.`);
  if (facts.ids.length < facts.n_series) {
    about.unshift(`Of ${count(facts.n_series, "series")} ${facts.ids.length.toLocaleString("en-US")} are `
      + "shown: the best, the worst and an even spread.");
  }
  const { series, left_out: left } = facts.explained;
  const others = left ? `; those of ${count(left, "other")} did not fit` : "";
  if (series.length) about.push(`Forecasts of ${count(series.length, "series")} are explained${others}.`);
  about.push("Everything is in this file; it loads nothing from anywhere.");
  byId("about").textContent = about.join(" ");
}

function writeAccuracy() {
  const { scores } = facts;
  if (!scores) return;
  byId("accuracy").hidden = false;
  const where = scores.series > 1 ? `the ends of ${count(scores.series, "series")}` : "the end of the series";
  byId("accuracy-text").textContent = `${count(scores.rows, "value")} in up to `
    + `${count(scores.windows, "window")} of up to ${count(scores.steps, "step")} at ${where}, `
    + "each forecast from what came before. The best is bold.";
  const held = new Set(scores.models.flatMap((model) => Object.keys(model.coverage)));
  const levels = [...held].sort((a, b) => a - b);
  const inside = (level) => `In ${level}\u00a0%`;
  const fixed = (value) => value?.toFixed(3) ?? "–";
  const main = scores.models.find((model) => model.name === facts.main);
  const scored = [main, ...scores.models].find((model) => typeof model?.WQL === "number");
  const weighted = (model) => (String(model.quantiles) === String(scored.quantiles) ? model.WQL : null);
  const columns = [ // name, value of a model, its text, and what is best when it is lowest
    ["MASE", (model) => model.MASE, fixed, Math.abs],
    ["RMSSE", (model) => model.RMSSE, fixed, Math.abs],
    ["MAE", (model) => model.MAE, formatNumber, Math.abs],
    ["Bias", (model) => model["relative bias"], percent, Math.abs],
    ...(scored ? [["WQL", weighted, fixed, Math.abs]] : []),
    ...levels.map((level) => [
      inside(level), (model) => model.coverage[level] ?? null, percent,
      (value) => Math.abs(value - level / 100),
    ]),
    ...(scores.series > 1 ? [["Best on", (model) => model.best, percent, (value) => -value]] : []),
  ];
  const lowest = columns.map(([, value, , loss]) => {
    return Math.min(...scores.models.map(value).filter((own) => own !== null).map(loss));
  });
  const rows = scores.models.map((model) => row(
    element("th", { scope: "row", className: "text" }, model.name),
    ...columns.map(([, value, format, loss], j) => {
      const own = value(model);
      const best = scores.models.length > 1 && own !== null && loss(own) === lowest[j];
      return element("td", { className: best ? "best" : "" }, format(own));
    }),
  ));
  byId("accuracy-table").replaceChildren(table(["Model", ...columns.map(([name]) => name)], rows));
  const change = facts.season > 1 ? `from season to season (${facts.season} steps)` : "from step to step";
  const names = new Set(scores.models.map(({ name }) => name));
  byId("legend").replaceChildren(...definitions([
    ["MASE", `mean error, divided by the usual change ${change} before the window; lower is better`],
    ["RMSSE", "the same with squares: large errors count more, and the change is that from step to step"],
    ["MAE", `mean error in units of the values${scores.series > 1 ? "; series with large values decide it" : ""}`],
    ["Bias", "how much too high (+) or too low (−) on average, in percent of the mean size of the values"],
    ...(scored ? [[
      "WQL", `weighted quantile loss of the quantiles ${scored.quantiles.join(", ")} %: twice their mean loss, of the `
      + "mean size of the values; lower is better",
    ]] : []),
    ...levels.slice(0, 1).map((level) => [
      inside(level), "share of actual values inside the interval; its level would be ideal",
    ]),
    ...(scores.series > 1 ? [["Best on", "share of series on which the model had the lowest mean error"]] : []),
    ...Object.entries(RULES).filter(([name]) => names.has(name)),
    ...scores.models.filter(({ name }) => name === facts.tree?.alone).map(({ name }) => [
      name, "forecasts as they were before they were made to add up",
    ]),
  ]));
  const drawn = Object.entries(main?.coverage_by_step ?? {}).filter(([, shares]) => shares.length > 1);
  byId("by-step").hidden = !drawn.length;
  if (drawn.length) byId("by-step").replaceChildren(...coverageByStep(main.name, drawn, scores.steps));
  const known = main?.quantiles.map((q, i) => [q / 100, main.below[i] ?? NaN]).filter((pair) => pair.every(Number.isFinite));
  byId("calibration").hidden = !known?.length;
  if (known?.length) byId("calibration").replaceChildren(...calibration(main.name, known));
}

/** Shares from low to 1 upwards: ticks below are pairs of text and place, from 0 to 1; marks get what places them. */
function pictureOfShares(label, low, below, words, marks) {
  const box = { width: 560, height: 240, left: 52, right: 56, top: 12, bottom: 38 };
  const right = box.width - box.right;
  const bottom = box.height - box.bottom;
  const x = (part) => box.left + part * (right - box.left);
  const y = (share) => bottom - ((share - low) / (1 - low)) * (bottom - box.top);
  const text = (content, at) => vector("text", at, content);
  const ticks = numberTicks(low, 1, niceStep(1 - low, 5)).flatMap((tick) => [
    vector("line", { class: "grid", x1: box.left, x2: right, y1: y(tick), y2: y(tick) }),
    text(`${Math.round(100 * tick)} %`, { x: box.left - 8, y: y(tick) + 4, "text-anchor": "end" }),
  ]);
  const middle = { "text-anchor": "middle" };
  return vector(
    "svg", { viewBox: `0 0 ${box.width} ${box.height}`, role: "img", "aria-label": label },
    ...ticks, ...below.map(([content, part]) => text(content, { x: x(part), y: bottom + 15, ...middle })),
    text(words, { x: (box.left + right) / 2, y: box.height - 5, ...middle }), ...marks(x, y),
  );
}

/** The share of values inside intervals against the step ahead: pairs of level and shares, in lines. */
function coverageByStep(name, levels, steps) {
  const shares = levels.flatMap(([level, own]) => [level / 100, ...own.filter((share) => share !== null)]);
  const low = Math.max(Math.floor(10 * Math.min(...shares) - 0.5) / 10, 0);
  const part = (step) => (step - 1) / (steps - 1);
  const every = Math.max(niceStep(steps, 8), 1);
  const below = [...new Set([1, ...numberTicks(2, steps, every)])].map((step) => [String(step), part(step)]);
  const label = `Share of values inside the intervals of ${name}, by step ahead`;
  const picture = pictureOfShares(label, low, below, "steps ahead", (x, y) => levels.flatMap(([level, own], i) => [
    vector("line", { class: `promise level-${i % 4}`, x1: x(0), x2: x(1), y1: y(level / 100), y2: y(level / 100) }),
    line(`level-${i % 4}`, own.map((share, k) => [x(part(k + 1)), share === null ? NaN : y(share)])),
    vector("text", { class: `level-${i % 4}`, x: x(1) + 8, y: y(level / 100) + 4 }, `${level} %`),
  ]));
  const caption = element(
    "figcaption", {}, element("strong", {}, "Inside intervals, step by step"),
    `Values inside the intervals of ${name}; dashed is what each promises. Lines that fall below it `
    + "belong to intervals that are too narrow that far ahead.",
  );
  return [picture, caption];
}

/** The share of values at or below each quantile against its probability: pairs of both. */
function calibration(name, pairs) {
  const said = pairs.map(([promised, share]) => `${percent(share)} at or below that of ${percent(promised)}`);
  const label = `Share of values below the quantiles of ${name}: ${said.join(", ")}`;
  const below = numberTicks(0, 1, 0.2).map((tick) => [`${Math.round(100 * tick)} %`, tick]);
  const picture = pictureOfShares(label, 0, below, "quantile", (x, y) => [
    vector("line", { class: "promise level-0", x1: x(0), x2: x(1), y1: y(0), y2: y(1) }),
    line("level-0", pairs.map(([promised, share]) => [x(promised), y(share)])),
    ...pairs.map(([promised, share]) => vector("circle", { cx: x(promised), cy: y(share), r: 4 })),
  ]);
  const caption = element(
    "figcaption", {}, element("strong", {}, "Below quantiles"),
    `Values at or below each quantile of ${name}; dashed is what they promise. A line flatter than it belongs to `
    + "intervals that are too narrow, a steeper one to intervals that are too wide, and one above it to quantiles "
    + "that are too high. A value that equals a quantile counts as below, as zeros often do.",
  );
  return [picture, caption];
}

/** Groups, each below the one it is inside of, with errors before and after they were made to add up. */
function writeTree() {
  const { tree } = facts;
  if (!tree) return;
  byId("tree").hidden = false;
  const places = new Map(facts.ids.map((id, i) => [id, i]));
  const adds = tree.gap < 1e-6
    ? "Forecasts add up: every group is the sum of its series at every step."
    : `Forecasts do not add up: a group differs from the sum of its series by up to ${percent(tree.gap)}.`;
  const tested = tree.rows.some(({ after }) => after !== null);
  const compared = tree.rows.some(({ before }) => before !== null);
  const left = tree.groups - tree.rows.length;
  const texts = [adds];
  if (left) texts.push(`Of ${count(tree.groups, "group")} the first ${tree.rows.length} are shown.`);
  if (compared) {
    texts.push("Errors (MASE in backtests, lower is better) are those of forecasts made one by one, and of "
      + "the same after they were made to add up.");
  }
  if (compared && tree.after > 1.05 * tree.before) {
    texts.push("On the mean of the series adding up made errors larger: try another way to reconcile.");
  }
  byId("tree-text").textContent = texts.join(" ");
  const fixed = (value) => value?.toFixed(3) ?? "–";
  const errors = ({ before, after }) => (compared ? [before, after] : [after]).map((own, i, both) => {
    const best = compared && own !== null && own === Math.min(...both.filter((other) => other !== null));
    return element("td", { className: best && both[0] !== both[1] ? "best" : "" }, fixed(own));
  });
  const rows = tree.rows.map((group) => {
    const place = places.get(group.name);
    const name = place === undefined ? shortName(group.name) : nameButton(group.name, () => goToSeries(place));
    const head = element("th", { scope: "row", className: "branch" }, name);
    head.style.paddingLeft = `${1.4 * group.depth}rem`;
    return row(
      head, element("td", { className: "text" }, group.level), element("td", {}, whole.format(group.size)),
      element("td", {}, formatNumber(group.total)), ...(tested ? errors(group) : []),
    );
  });
  if (tested) {
    rows.push(row(
      element("th", { scope: "row" }, "Mean of the series"), element("td", { className: "text" }, "series"),
      element("td", {}, whole.format(tree.series)), element("td", {}, ""), ...errors(tree),
    ));
  }
  const heads = compared ? ["Error alone", "Added up"] : ["Error"];
  const head = ["Group", "Level", "Series", `Forecast of ${count(facts.steps, "step")}`, ...(tested ? heads : [])];
  byId("tree-table").replaceChildren(table(head, rows, ["Group", "Level"]));
}

function writeAnomalies() {
  const { anomalies: found } = facts;
  if (!found) return;
  byId("anomalies").hidden = false;
  const chance = (100 - found.level) / 100;
  const some = found.series < facts.n_series ? ` of ${facts.n_series.toLocaleString("en-US")}` : "";
  const lie = found.found === 1 ? "lies" : "lie";
  const texts = [
    `${found.found.toLocaleString("en-US")} of ${count(found.judged, "judged value")} `
    + `(${percent(found.found / found.judged)}), in ${found.series.toLocaleString("en-US")}${some} series, ${lie} outside `
    + `of the ${found.level}\u00a0% interval that was forecast one step before. By chance alone it would be about `
    + `${percent(chance)}. They have a ring in the chart.`,
  ];
  if (found.rows.length < found.found) texts.push(`The ${found.rows.length} farthest outside:`);
  byId("anomalies-text").textContent = texts.join(" ");
  const rows = found.rows.map(([series, time, value, low, high]) => row(
    element("td", { className: "text" }, nameButton(facts.ids[series], () => goToSeries(series, time))),
    element("td", {}, formatTime(time, facts.dates)),
    element("td", {}, formatNumber(value)),
    element("td", {}, `${formatNumber(low)} to ${formatNumber(high)}`),
  ));
  if (rows.length) {
    byId("anomalies-table").replaceChildren(table(["Series", "Time", facts.target, "Expected"], rows, ["Series"]));
  }
}

function writeExtremes(mase) {
  const scored = [...mase.keys()].filter((i) => Number.isFinite(mase[i])).sort((a, b) => mase[a] - mase[b]);
  if (scored.length < 2) return;
  byId("extremes").hidden = false;
  byId("extremes-text").textContent = `By MASE of ${facts.main}, lower is better.`;
  const most = Math.min(8, scored.length >> 1);
  const scale = mase[scored.at(-1)];
  const ranking = (chosen) => element("ol", { className: "ranking" }, ...chosen.map((i) => {
    const bar = element("i", { className: mase[i] > 1 ? "minus" : "" });
    bar.style.width = `${(100 * mase[i]) / scale}%`;
    return element(
      "li", {},
      nameButton(facts.ids[i], () => goToSeries(i)),
      element("span", { className: "bar", "aria-hidden": "true" }, bar),
      element("span", {}, mase[i].toFixed(2)),
    );
  }));
  byId("worst").replaceChildren(element("h3", {}, "Worst"), ranking(scored.slice(-most).reverse()));
  byId("best").replaceChildren(element("h3", {}, "Best"), ranking(scored.slice(0, most)));
}

function writeNotes() {
  const own = facts.notes.filter((note) => note.fallback);
  const other = facts.notes.filter((note) => !note.fallback);
  byId("notes").hidden = !facts.notes.length;
  const left = facts.n_notes - facts.notes.length;
  const texts = [
    ...(facts.n_fallbacks ? [`${count(facts.n_fallbacks, "series")} could not be modeled and got a simple forecast instead.`] : []),
    ...(left ? [`${count(left, "remark")} did not fit here.`] : []),
  ];
  byId("notes-text").textContent = texts.join(" ");
  if (own.length) byId("notes-title").textContent = "Series without a model of their own, and other remarks";
  if (own.length) writeRows(byId("fallbacks"), own);
  const remarks = byId("remarks");
  remarks.hidden = !other.length;
  remarks.querySelector("summary").textContent = count(other.length, own.length ? "other remark" : "remark");
  const open = () => writeRows(remarks.querySelector("div"), other);
  remarks.addEventListener("toggle", open, { once: true });
}

function writeRows(root, notes, most = 100) {
  const rows = notes.slice(0, most).map(({ id, series, problem, action }) => {
    const name = series === null ? shortName(id) : nameButton(id, () => goToSeries(series));
    return row(...[name, problem, action].map((text) => element("td", { className: "text" }, text)));
  });
  const head = ["Series", "What was found", "What was done"];
  root.replaceChildren(table(head, rows, head));
  const left = notes.length - most;
  if (left <= 0) return;
  const more = element("button", { type: "button" }, `Show ${Math.min(left, 400)} more of ${left}`);
  more.addEventListener("click", () => writeRows(root, notes, most + 400));
  root.append(more);
}
