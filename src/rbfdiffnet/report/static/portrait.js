// What the pretrained network sees in a series: the exemplars most like it, and its response curve.

const PICTURE = { past: 48, ahead: 24, width: 220, height: 110, pad: 6 };
const MOST_LIKE = 3;

/** Whether a term tells the same in another way, and adds nothing. */
const isBeside = ({ part, value }) => {
  return part === "response" || (part === "exemplar" && Number.isFinite(value));
};
const share = (gate) => `${(100 * gate).toFixed(gate < 0.0995 ? 1 : 0)} %`;

/** An element of a drawing, in the namespace of the one that the page has. */
function vector(tag, attributes, ...children) {
  const node = document.createElementNS(byId("drawing").content.firstElementChild.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A line through pairs of numbers, broken where they are not known. */
function line(className, points) {
  let pen = "M";
  const steps = points.map(([x, y]) => {
    const step = Number.isFinite(y) ? `${pen}${x.toFixed(1)} ${y.toFixed(1)}` : "";
    pen = step ? "L" : "M";
    return step;
  });
  return vector("path", { class: className, d: steps.join("") });
}

/** The past of a series, and what is behind it, as a line of some class. */
function smallPicture(past, [className, behind], label) {
  const { width, height, pad } = PICTURE;
  const all = [...past, ...behind].filter(Number.isFinite);
  const low = Math.min(...all);
  const span = Math.max(...all) - low || 1;
  const x = (k) => pad + (k / (PICTURE.past + PICTURE.ahead - 1)) * (width - 2 * pad);
  const y = (value) => height - pad - ((value - low) / span) * (height - 2 * pad);
  const origin = x(PICTURE.past - 0.5);
  const from = (first, values) => values.map((value, k) => [x(first + k), y(value)]);
  return vector(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    vector("rect", { class: "after", x: origin, y: 0, width: width - origin, height }),
    line(className, from(PICTURE.past - 1, [past.at(-1), ...behind])),
    line("past", from(PICTURE.past - past.length, past)),
  );
}

function pictureOf(title, text, drawing) {
  const caption = element("figcaption", {}, element("strong", {}, title), element("span", {}, text));
  return element("figure", {}, drawing, caption);
}

/** Stems at values of the past, the latest on the right: curves of name and pairs of lag and weight. */
function responseCurve(curves, season, width) {
  const box = { left: 44, right: 10, top: 8, bottom: 36, height: 190 };
  const pairs = curves.flatMap((curve) => curve.pairs);
  const farthest = Math.max(...pairs.map(([lag]) => lag), 12);
  const weights = pairs.map(([, weight]) => weight);
  const [low, high] = [Math.min(0, ...weights), Math.max(0, ...weights)];
  const pad = 0.06 * (high - low || 1);
  const inner = width - box.left - box.right;
  const bottom = box.height - box.bottom;
  const slot = inner / farthest;
  const x = (lag) => width - box.right - (lag - 0.5) * slot;
  const y = (v) => bottom - ((v - low + pad) / (high - low + 2 * pad)) * (bottom - box.top);
  const parts = [];
  const step = niceStep(high - low || 1, 4);
  for (const tick of numberTicks(low, high, step).map((found) => found || 0)) {
    const name = Math.abs(tick) < 1e-9 ? "zero" : "grid";
    parts.push(
      vector("line", { class: name, x1: box.left, x2: width - box.right, y1: y(tick), y2: y(tick) }),
      vector("text", { x: box.left - 8, y: y(tick) + 4, "text-anchor": "end" }, formatNumber(tick)),
    );
  }
  const every = season > 1 ? season * Math.max(1, Math.round(farthest / season / 6)) : niceStep(farthest, 6);
  for (const lag of [1, ...numberTicks(2, farthest, Math.max(every, 2))]) {
    parts.push(vector("text", { x: x(lag), y: bottom + 15, "text-anchor": "middle" }, String(lag)));
  }
  const middle = box.left + inner / 2;
  const words = "steps back from the first forecast";
  parts.push(vector("text", { x: middle, y: box.height - 4, "text-anchor": "middle" }, words));
  const thick = Math.min(Math.max(slot / (curves.length + 1), 1), 7);
  curves.forEach(({ name, label, pairs: own }, i) => {
    const shift = (i - (curves.length - 1) / 2) * (thick + 0.5);
    for (const [lag, weight] of own) {
      const at = x(lag) + shift - thick / 2;
      const [upper, lower] = [y(Math.max(weight, 0)), y(Math.min(weight, 0))];
      const text = `${label}: ${lag} back, ${formatNumber(weight)}`;
      const shape = { class: name, x: at, y: upper, width: thick, height: Math.max(lower - upper, 0.5) };
      parts.push(vector("rect", shape, vector("title", {}, text)));
    }
  });
  const label = "Response of the forecasts to the latest values";
  return vector("svg", { width, height: box.height, role: "img", "aria-label": label }, ...parts);
}

/** Fill the panel for a series, given all its terms; hide it where the pretrained network has none. */
function showPortrait(panel, { y, ahead, terms, pictures, season, dates }) {
  const times = [...new Set(terms.map((term) => term.time))].sort((a, b) => a - b);
  const first = terms.filter((term) => term.time === times[0]);
  const like = first.filter((term) => pictures[term.term])
    .sort((a, b) => b.activation - a.activation).slice(0, MOST_LIKE);
  panel.hidden = !like.length;
  if (panel.hidden) return;

  const past = [...y.slice(-PICTURE.past)];
  const forecast = ["forecast", [...ahead.slice(0, PICTURE.ahead)]];
  const gates = like.reduce((total, term) => total + term.activation, 0);
  const figures = like.map(({ term, activation }) => {
    const [name, words] = term.split(": ");
    const values = pictures[term].map((value) => value ?? NaN);
    const known = values.slice(values.findIndex(Number.isFinite), PICTURE.past);
    const drawing = smallPicture(known, ["followed", values.slice(PICTURE.past)], term);
    return pictureOf(`${share(activation)}, ${name}`, words, drawing);
  });
  const number = ["", "This one counts", "These two count", "These three count"][like.length];
  const children = [
    element("h2", {}, "Exemplars that count most"),
    quiet(
      "The pretrained network has a linear forecaster around each of its exemplars, which are simulated "
      + "series, and mixes all of them by gates, which add up to 100 %. "
      + `${number} most here, with ${share(gates)}${like.length > 1 ? " together" : ""}.`,
    ),
    element(
      "div",
      { className: "pictures" },
      pictureOf("This series", "and its forecast", smallPicture(past, forecast, "This series")),
      ...figures,
    ),
  ];
  const ends = [...new Set([times[0], times.at(-1)])];
  const curves = ends.map((time, i) => ({
    name: `curve-${i}`,
    label: formatTime(time, dates),
    pairs: terms.filter((term) => term.part === "response" && term.time === time)
      .map((term) => [Number.parseInt(term.term.split(" ")[1], 10), term.weight]),
  })).filter(({ pairs }) => pairs.length);
  if (curves.length) {
    const keys = curves.map(({ name, label }, i) => {
      const which = i ? "last step" : "first step";
      return element("span", {}, element("i", { className: name }), `${label}, the ${which}`);
    });
    const width = Math.max(panel.clientWidth - 38, 260);
    children.push(
      element("h3", {}, "Response curve"),
      quiet("By how much the pretrained network's part of a forecast would be higher if one value of the past were higher by 1, with the gates as they are."),
      element("p", { className: "keys small" }, ...keys),
      responseCurve(curves, season, width),
    );
  }
  panel.replaceChildren(...children);
}
