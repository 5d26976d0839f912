// What is behind one forecast: its terms, which add up to it, and the learned equation.

const MOST_TERMS = 10;
const PARTS = {
  history: "Latest values",
  level: "Level of the window",
  bias: "Constant",
  linear: "Lags and inputs, linear part",
  exemplar: "Exemplars, nonlinear part",
  effect: "Known inputs and calendar",
  member: "Members of the stack",
  fallback: "Fallback",
  noise: "Noise",
  transforms: "Transforms",
  logarithm: "Logarithm",
  guard: "Guards",
  bound: "Lower bound",
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
    const track = element("span", { className, "aria-hidden": "true" }, element("div", { className: "bar" }, bar, zero));
    grid.append(element("span", { className }, label), track, element("span", { className }, text));
  };
  for (const [label, value] of rows) add(label, value, "");
  if (total !== undefined) add("Forecast", total, "total", totalText);
  return grid;
}

/** The largest rows, and what the others sum up to. */
function largest(terms, most) {
  const sorted = terms.toSorted((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  const rows = sorted.slice(0, most).map((term) => [term.label ?? term.term, term.contribution]);
  const rest = sorted.slice(most);
  const sum = rest.reduce((total, term) => total + term.contribution, 0);
  if (rest.length) rows.push([`${rest.length} smaller ones`, sum]);
  return rows;
}

function equationText(terms, most = 8) {
  const power = (k) => (k < 2 ? "" : String(k).replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]));
  const shown = terms.slice(0, most).map(([order, input, value], i) => {
    const sign = value < 0 ? "− " : i ? "+ " : "";
    const size = formatNumber(Math.abs(value));
    return `${sign}${size}${order ? ` ∂${power(order)}/∂(${input})${power(order)}` : ""}`;
  });
  const more = terms.length > most ? " + …" : "";
  return `f(x) = w₀ + Σ λᵢ xᵢ + Σⱼ wⱼ ( ${shown.join(" ")}${more} ) φⱼ(x)`;
}

/** Fill the panel for a moment; goTo(times) moves the chart. */
function showExplanation(panel, { moment, value, text, main, terms, equation, explained, dates, goTo }) {
  const title = element("h2", {}, `Why ${text} ${dates ? "on" : "at"} ${formatTime(moment.time, dates)}?`);
  panel.hidden = false;
  if (!terms.length) {
    const reason = explained.length
      ? `This series has no explanation in the report; ${explained.length.toLocaleString("en-US")} others have.`
      : "No explanations were put into this report.";
    const links = explained.slice(0, 5).map(({ name, select }) => linkButton(name, select));
    panel.replaceChildren(title, element("p", { className: "quiet" }, reason), element("p", { className: "dates" }, ...links));
    return;
  }
  const groups = Map.groupBy(terms, (term) => term.part);
  const sums = [...groups].map(([part, own]) => [
    PARTS[part] ?? part,
    own.reduce((total, term) => total + term.contribution, 0),
  ]);
  const children = [title];
  if (groups.size > 1) {
    children.push(
      element("p", { className: "quiet" }, `${main} adds up, step by step:`),
      barChart(sums, value, text),
    );
  }
  for (const [part, heading] of [["member", "What each member adds"], ["linear", "Lags and inputs"], ["effect", "Known inputs and calendar"]]) {
    const own = groups.get(part);
    if (!own || (own.length < 2 && groups.size > 1)) continue;
    const labeled = part === "member" ? own.map((t) => ({ ...t, label: `${t.term} (${formatNumber(t.value)}, weight ${t.weight.toFixed(2)})` })) : own;
    children.push(element("h3", {}, heading), barChart(largest(labeled, MOST_TERMS), groups.size > 1 ? undefined : value, text));
  }
  const exemplars = groups.get("exemplar") ?? [];
  if (exemplars.length) children.push(...exemplarTable(exemplars, dates, goTo));
  if (equation) children.push(...equationPart(equation, groups.has("linear") && !exemplars.length));
  panel.replaceChildren(...children);
}

function exemplarTable(exemplars, dates, goTo) {
  const sorted = exemplars.toSorted((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  const rows = sorted.slice(0, 6).map((term) => {
    const buttons = term.nearest.split(", ").filter(Boolean).map((text) => linkButton(text, () => goTo([parseTime(text, dates)])));
    return element("tr", {},
      element("th", { scope: "row" }, term.term),
      element("td", {}, formatNumber(term.contribution)),
      element("td", {}, `${(100 * term.activation).toFixed(0)} %`),
      element("td", { className: "text" }, element("span", { className: "dates" }, ...buttons)));
  });
  const rest = exemplars.length - rows.length;
  return [
    element("h3", {}, "Exemplars"),
    element("p", { className: "quiet" }, "Typical situations of the past that the network compares with; the dates are those most like them."
      + (rest > 0 ? ` The ${rows.length} that count most, of ${exemplars.length}.` : "")),
    scrolled(table(["Exemplar", "Adds", "Similarity", "Most like"], rows)),
  ];
}

function equationPart(equation, linear) {
  const heading = element("h3", {}, "Learned equation");
  if (linear) {
    const note = "There was nothing nonlinear to learn here: the part with the differential operator has shrunk to nothing.";
    return [heading, element("p", { className: "equation" }, "f(x) = w₀ + Σ λᵢ xᵢ"), element("p", { className: "quiet" }, note)];
  }
  const note = "The differential operator that the network learned; derivatives are by its inputs, standardized.";
  const rows = equation.map(([order, input, value]) => [order ? `∂${order > 1 ? `^${order}` : ""} / ∂ ${input}` : "1", value]);
  const all = element("details", {}, element("summary", {}, `All ${rows.length} coefficients`), barChart(rows));
  return [heading, element("p", { className: "equation" }, equationText(equation)), element("p", { className: "quiet" }, note), all];
}

function linkButton(text, action) {
  const button = element("button", { className: "link", type: "button" }, text);
  button.addEventListener("click", action);
  return button;
}

function table(head, rows) {
  const cells = head.map((text, i) => element("th", { scope: "col", className: i === head.length - 1 && text === "Most like" ? "text" : "" }, text));
  return element("table", {}, element("thead", {}, element("tr", {}, ...cells)), element("tbody", {}, ...rows));
}

function scrolled(node) {
  return element("div", { className: "scroll" }, node);
}
