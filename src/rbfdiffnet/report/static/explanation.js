// What is behind one forecast: its terms, which add up to it, and the learned equation.

const MOST_TERMS = 10;
const MOST_EXEMPLARS = 6;
const PARTS = {
  history: "Latest values",
  level: "Level",
  season: "Season",
  growth: "Growth",
  bias: "Constant",
  linear: "Lags and inputs, linear part",
  exemplar: "Exemplars, nonlinear part",
  effect: "Known inputs and calendar",
  "past input": "Inputs known only in the past",
  member: "Other forecasts, mixed in",
  fallback: "Fallback",
  noise: "Noise",
  transforms: "Transforms",
  logarithm: "Logarithm",
  mean: "Mean instead of median",
  guard: "Guards",
  bound: "Lower bound",
};
// Members of the stack, as anyone can read them.
const MEMBERS = {
  pretrained: "network trained on simulated series",
  corrected: "the same network, corrected by these series",
  direct: "network trained on these series",
  "last season": "the last season, repeated",
  "last season, grown": "the last season, at the present level",
  "damped trend": "a trend that levels off",
  "own map": "the rule that this series follows",
  "what the panel's rows correct": "correction by these series",
};
const DETAILS = {
  member: "What each of the other forecasts adds",
  level: "What the level is made of",
  season: "Seasons",
  linear: "Lags and inputs",
  effect: "Known inputs and calendar",
  "past input": "Inputs known only in the past",
};

/** Bars to the left and right of zero: rows of label, number. A total with its text may come last. */
function barChart(rows, total, totalText) {
  const sizes = rows.map(([, value]) => value);
  const low = Math.min(0, ...sizes, total ?? 0);
  const span = Math.max(0, ...sizes, total ?? 0) - low || 1;
  const grid = element("div", { className: "bars" });
  const add = (label, value, className, text = formatNumber(value)) => {
    const bar = element("i", { className: value < 0 ? "minus" : "" });
    bar.style.left = `${(100 * (Math.min(value, 0) - low)) / span}%`;
    bar.style.width = `${(100 * Math.abs(value)) / span}%`;
    const zero = element("b");
    zero.style.left = `${(100 * -low) / span}%`;
    const track = element("div", { className: "bar" }, bar, zero);
    grid.append(
      element("span", { className }, label),
      element("span", { className, "aria-hidden": "true" }, track),
      element("span", { className }, text),
    );
  };
  for (const [label, value] of rows) add(label, value, "");
  if (total !== undefined) add("Forecast", total, "total", totalText);
  return grid;
}

const sum = (terms) => terms.reduce((total, term) => total + term.contribution, 0);

function bySize(terms) {
  return terms.toSorted((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
}

/** The largest terms as rows, and what the others add up to. */
function largest(terms) {
  const sorted = bySize(terms);
  const rest = sorted.slice(MOST_TERMS);
  const rows = sorted.slice(0, MOST_TERMS).map((term) => {
    const detail = ` (${formatNumber(term.value)}, weight ${term.weight.toFixed(2)})`;
    const name = MEMBERS[term.term] ?? term.term;
    return [term.part === "member" ? name + detail : term.term, term.contribution];
  });
  return rest.length ? [...rows, [`${rest.length} smaller ones`, sum(rest)]] : rows;
}

/** Fill the panel for a moment; goTo(time) moves the chart. */
function showExplanation(panel, { moment, value, text, main, terms, equation, explained, dates, goTo }) {
  const when = formatTime(moment.time, dates);
  const title = element("h2", {}, `Why ${text} ${dates ? "on" : "at"} ${when}?`);
  panel.hidden = false;
  if (!terms.length) {
    panel.replaceChildren(title, ...unexplained(explained));
    return;
  }
  const groups = Map.groupBy(terms, (term) => term.part);
  const several = groups.size > 1;
  const children = [title];
  if (several) {
    const rows = [...groups].map(([part, own]) => [PARTS[part] ?? part, sum(own)]);
    children.push(quiet(`${main} adds up:`), barChart(rows, value, text));
  }
  for (const [part, heading] of Object.entries(DETAILS)) {
    const own = groups.get(part) ?? [];
    if (own.length < (several ? 2 : 1)) continue;
    const bars = several ? barChart(largest(own)) : barChart(largest(own), value, text);
    children.push(element("h3", {}, heading), bars);
  }
  const exemplars = groups.get("exemplar") ?? [];
  if (exemplars.length) children.push(...exemplarTable(exemplars, dates, goTo));
  // The pretrained network has no operator: one for each center is in its weights.
  if (equation) children.push(...equationPart(equation, groups));
  panel.replaceChildren(...children);
}

function unexplained(others) {
  if (!others.length) return [quiet("No explanations were put into this report.")];
  const links = others.slice(0, 5).map(({ name, select }) => nameButton(name, select));
  const number = others.length.toLocaleString("en-US");
  return [
    quiet(`This series has no explanation in the report; ${number} others have.`),
    element("p", { className: "dates" }, ...links),
  ];
}

function exemplarTable(exemplars, dates, goTo) {
  const rows = bySize(exemplars).slice(0, MOST_EXEMPLARS).map((term) => {
    const like = term.nearest.split(", ").filter(Boolean);
    const links = like.map((text) => linkButton(text, () => goTo(parseTime(text, dates))));
    return row(
      element("th", { scope: "row" }, term.term),
      element("td", {}, formatNumber(term.contribution)),
      element("td", {}, `${(100 * term.activation).toFixed(0)} %`),
      element("td", { className: "text" }, element("span", { className: "dates" }, ...links)),
    );
  });
  const some = exemplars.length > rows.length
    ? ` Here are the ${rows.length} of ${exemplars.length} that count most.`
    : "";
  return [
    element("h3", {}, "Exemplars"),
    quiet(`Typical situations of the past, and the dates that were most like them.${some}`),
    table(["Exemplar", "Adds", "Similarity", "Most like"], rows, ["Most like"]),
  ];
}

function equationPart(equation, groups) {
  const heading = element("h3", {}, "Learned equation");
  const formula = (text) => element("p", { className: "equation" }, text);
  // Without exemplars that count the operator says nothing, and its coefficients stay as they began.
  const slopes = equation.filter(([order]) => order > 0).map(([, , value]) => value);
  const untouched = slopes.length > 1 && new Set(slopes).size === 1;
  if (untouched || (groups.has("linear") && !groups.has("exemplar"))) {
    const note = "There was nothing nonlinear to learn: the forecast is a weighted sum of past values.";
    return [heading, formula("f(x) = w₀ + Σ λᵢ xᵢ"), quiet(note)];
  }
  const origin = groups.has("member")
    ? "This is what a network of this series alone learns"
    : "This is what the network learned";
  const rows = equation.map(([order, input, value]) => [derivative(order, input) || "1", value]);
  const summary = element("summary", {}, `All ${rows.length} coefficients`);
  return [
    heading,
    formula(equationText(equation)),
    quiet(`${origin}; derivatives are by its inputs, standardized.`),
    element("details", {}, summary, barChart(rows)),
  ];
}

function derivative(order, input) {
  if (order === 0) return "";
  const power = order > 1 ? String(order).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]) : "";
  return `∂${power}/∂(${input})${power}`;
}

function equationText(terms, most = 8) {
  const shown = terms.slice(0, most).map(([order, input, value], i) => {
    const sign = value < 0 ? "− " : i ? "+ " : "";
    return `${sign}${formatNumber(Math.abs(value))} ${derivative(order, input)}`.trim();
  });
  const more = terms.length > most ? " + …" : "";
  return `f(x) = w₀ + Σ λᵢ xᵢ + Σⱼ wⱼ ( ${shown.join(" ")}${more} ) φⱼ(x)`;
}
