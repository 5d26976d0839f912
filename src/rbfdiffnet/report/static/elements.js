// Elements of the page, made of text and other elements: never of markup.

/** An element with properties, attributes (those with a dash, and roles) and children. */
function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

const byId = (id) => document.getElementById(id);

const quiet = (text) => element("p", { className: "quiet" }, text);

/** What goes into a list of terms and what is said about them. */
function definitions(pairs) {
  return pairs.flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]);
}

/** A table that scrolls sideways where it is too wide; words are columns of text. */
function table(head, rows, words = []) {
  const cells = head.map((name) => {
    return element("th", { scope: "col", className: words.includes(name) ? "text" : "" }, name);
  });
  const body = element("tbody", {}, ...rows);
  const whole = element("table", {}, element("thead", {}, element("tr", {}, ...cells)), body);
  return element("div", { className: "scroll" }, whole);
}

function row(...cells) {
  return element("tr", {}, ...cells);
}

function linkButton(text, action) {
  const button = element("button", { className: "link", type: "button" }, text);
  button.addEventListener("click", action);
  return button;
}

/** An id as it is shown: blank ones in words, long ones cut. */
function shortName(id, most = 60) {
  if (!id.trim()) return "(blank)";
  const signs = [...id];
  return signs.length > most ? `${signs.slice(0, most - 1).join("")}…` : id;
}

function nameButton(id, action) {
  const button = linkButton(shortName(id), action);
  button.title = id;
  return button;
}
