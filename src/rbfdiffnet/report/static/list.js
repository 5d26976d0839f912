// A list of any number of series, of which only the rows in sight exist; with search and arrow keys.

const ROW = 34;

class SeriesList {
  /** describe(i) gives the text, a title and a remark of series i; onSelect(i) is told of every choice. */
  constructor(root, search, count, describe, onSelect) {
    Object.assign(this, { root, search, count, describe, onSelect, items: [], selected: null });
    this.spacer = element("div", { className: "spacer", role: "presentation" });
    root.append(this.spacer);
    root.addEventListener("scroll", () => this.render());
    new ResizeObserver(() => this.render()).observe(root);
    for (const field of [root, search]) field.addEventListener("keydown", (event) => this.key(event));
  }

  /** Show series in an order, of those that were sorted all that fit the search. */
  setOrder(order, texts) {
    Object.assign(this, { order, texts });
    this.root.style.height = `${Math.max(order.length, 1) * ROW + 2}px`;
    this.filter();
  }

  filter() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.items = this.order.filter((i) => words.every((word) => this.texts[i].includes(word)));
    const [found, all] = [this.items, this.order].map(({ length }) => length.toLocaleString("en-US"));
    this.count.textContent = words.length ? `${found} of ${all} series` : `${all} series`;
    this.root.scrollTop = 0;
    this.reveal();
    this.render();
  }

  select(series) {
    this.selected = series;
    this.reveal();
    this.render();
    this.onSelect(series);
  }

  reveal() {
    const at = this.items.indexOf(this.selected) * ROW;
    const { scrollTop, clientHeight } = this.root;
    if (at < 0) return;
    if (at < scrollTop) this.root.scrollTop = at;
    else if (at + ROW > scrollTop + clientHeight) this.root.scrollTop = at + ROW - clientHeight;
  }

  key(event) {
    const inSearch = event.currentTarget === this.search;
    const page = Math.max(1, Math.floor(this.root.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (!inSearch) Object.assign(steps, { Home: -Infinity, End: Infinity });
    if (event.key === "Enter" && inSearch) {
      event.preventDefault();
      if (this.items.length && !this.items.includes(this.selected)) this.select(this.items[0]);
    }
    if (!Object.hasOwn(steps, event.key) || !this.items.length) return;
    event.preventDefault();
    const now = this.items.indexOf(this.selected);
    const next = now < 0 ? 0 : Math.min(Math.max(now + steps[event.key], 0), this.items.length - 1);
    this.select(this.items[next]);
  }

  render() {
    const { root, items } = this;
    this.spacer.style.height = `${items.length * ROW}px`;
    const first = Math.max(0, Math.floor(root.scrollTop / ROW) - 2);
    const last = Math.min(items.length, Math.ceil((root.scrollTop + root.clientHeight) / ROW) + 2);
    const rows = [];
    for (let at = first; at < last; at++) rows.push(this.row(items[at], at));
    if (!items.length) rows.push(element("p", { className: "empty" }, "No series fits the search."));
    this.spacer.replaceChildren(...rows);
    const shown = rows.some((row) => row.id === `series-${this.selected}`);
    for (const field of [root, this.search]) {
      if (shown) field.setAttribute("aria-activedescendant", `series-${this.selected}`);
      else field.removeAttribute("aria-activedescendant");
    }
  }

  row(series, at) {
    const { text, title, remark } = this.describe(series);
    const row = element(
      "div",
      {
        id: `series-${series}`, className: "option", role: "option", title,
        "aria-selected": series === this.selected, "aria-posinset": at + 1, "aria-setsize": this.items.length,
      },
      element("span", {}, text),
      element("span", { className: "quiet" }, remark),
    );
    row.style.top = `${at * ROW}px`;
    row.addEventListener("click", () => this.select(series));
    return row;
  }
}
