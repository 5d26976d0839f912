// Pointers, wheel and keys of a chart: drag pans, pinch and wheel zoom, a click picks.

function listen(chart) {
  const { canvas, overview } = chart;
  const pointers = new Map();
  let moved = false;
  const at = (event) => chart.time(event.offsetX);
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event.offsetX);
    moved = pointers.size > 1;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (before === undefined) return chart.setCursorQuietly(nearest(chart.moments, at(event)));
    if (!moved && Math.abs(event.offsetX - before) < 4) return undefined;
    moved = true;
    const others = [...pointers].filter(([id]) => id !== event.pointerId);
    if (others.length) {
      const other = others[0][1];
      chart.zoom(Math.abs(before - other) / Math.max(Math.abs(event.offsetX - other), 8), chart.time(other));
    } else {
      chart.pan((before - event.offsetX) / chart.width());
    }
    pointers.set(event.pointerId, event.offsetX);
    return undefined;
  });
  canvas.addEventListener("pointerup", (event) => {
    pointers.delete(event.pointerId);
    if (moved) return;
    const position = nearest(chart.moments, at(event));
    chart.setCursorQuietly(position);
    chart.pick(position);
  });
  canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => chart.leave());
  canvas.addEventListener("blur", () => chart.leave());
  canvas.addEventListener("dblclick", () => chart.latest());
  canvas.addEventListener("wheel", (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!sideways && !event.ctrlKey && document.activeElement !== canvas) return; // scrolls the page
    event.preventDefault();
    if (sideways) chart.pan(event.deltaX / chart.width());
    else chart.zoom(Math.exp(event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), at(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const now = chart.cursor ?? nearest(chart.moments, chart.data.ahead.times[0] ?? chart.limits[1]) - 1;
    const actions = {
      ArrowLeft: () => (event.shiftKey ? chart.pan(-0.2) : chart.setCursor(now - 1)),
      ArrowRight: () => (event.shiftKey ? chart.pan(0.2) : chart.setCursor(now + 1)),
      Home: () => chart.setCursor(0),
      End: () => chart.setCursor(chart.moments.length - 1),
      "+": () => chart.zoom(0.7),
      "=": () => chart.zoom(0.7),
      "-": () => chart.zoom(1 / 0.7),
      0: () => chart.latest(),
      Enter: () => chart.pick(),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
  const jump = (event) => {
    if (!event.buttons) return;
    const share = (event.offsetX - chart.left) / chart.width();
    const middle = chart.limits[0] + share * (chart.limits[1] - chart.limits[0]);
    chart.view(middle - (chart.to - chart.from) / 2, middle + (chart.to - chart.from) / 2);
  };
  overview.addEventListener("pointerdown", (event) => {
    overview.setPointerCapture(event.pointerId);
    jump(event);
  });
  overview.addEventListener("pointermove", jump);
}
