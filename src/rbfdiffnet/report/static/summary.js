// What is said about all series: the verdict, accuracy, the best and the worst, remarks.

const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(1).replace("-", "−")} %`);

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
  const texts = [
    `${count(facts.n_series, "series")} ·`, `history from ${first}`, `to ${last} ·`,
    `${count(facts.steps, "step")} ahead`,
  ];
  const parts = texts.flatMap((text) => [element("span", { className: "nowrap" }, text), " "]);
  byId("extent").replaceChildren(...parts);

  const about = [...(facts.source ? [facts.source] : []), "Numbers are kept with four to five digits."];
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
  byId("accuracy-text").textContent = `${count(scores.rows, "value")} in up to `
    + `${count(scores.windows, "window")} of up to ${count(scores.steps, "step")} at the ends of the `
    + `${scores.series.toLocaleString("en-US")} series, each forecast from what came before. The best is bold.`;
  const held = new Set(scores.models.flatMap((model) => Object.keys(model.coverage)));
  const levels = [...held].sort((a, b) => a - b);
  const inside = (level) => `In ${level}\u00a0%`;
  const fixed = (value) => value?.toFixed(3) ?? "–";
  const columns = [ // name, value of a model, its text, and what is best when it is lowest
    ["MASE", (model) => model.MASE, fixed, Math.abs],
    ["RMSSE", (model) => model.RMSSE, fixed, Math.abs],
    ["MAE", (model) => model.MAE, formatNumber, Math.abs],
    ["Bias", (model) => model["relative bias"], percent, Math.abs],
    ...levels.map((level) => [
      inside(level), (model) => model.coverage[level] ?? null, percent,
      (value) => Math.abs(value - level / 100),
    ]),
    ["Best on", (model) => model.best, percent, (value) => -value],
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
  const season = `the value one season (${facts.season} steps) before`;
  const naive = facts.season > 1 ? season : "the value before";
  byId("legend").replaceChildren(...definitions([
    ["MASE", `mean absolute error, over that of ${naive} in the values before the window; mean over windows, then series`],
    ["RMSSE", "root mean squared error, over that of the value before; mean over windows, then series"],
    ["MAE", "mean absolute error in units of the series; series with large values decide it"],
    ["Bias", "how much too high (+) or too low (−) on average, of the mean size of the values"],
    ...levels.slice(0, 1).map((level) => [
      inside(level), "share of actual values inside the interval; its level would be ideal",
    ]),
    ["Best on", "share of series on which the model had the lowest mean absolute error"],
  ]));
}

function writeExtremes(mase) {
  const scored = [...mase.keys()].filter((i) => Number.isFinite(mase[i])).sort((a, b) => mase[a] - mase[b]);
  if (scored.length < 2) return;
  byId("extremes").hidden = false;
  const naive = facts.season > 1 ? "seasonal naive" : "the value before";
  byId("extremes-text").textContent = `By MASE of ${facts.main}; below 1 is better than ${naive} was `
    + "on the training values.";
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
  byId("notes-text").textContent = facts.n_fallbacks
    ? `${count(facts.n_fallbacks, "series")} could not be modeled and got a simple forecast instead.`
    : "Every series was modeled; none got a fallback.";
  const left = facts.n_notes - facts.notes.length;
  if (left) byId("notes-text").textContent += ` ${count(left, "remark")} did not fit here.`;
  if (own.length) writeRows(byId("fallbacks"), own);
  const remarks = byId("remarks");
  remarks.hidden = !other.length;
  remarks.querySelector("summary").textContent = count(other.length, "other remark");
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
