// Draws what was missing and what was lent as a curve, and lets the arrow keys go from commit to commit.
(() => {
  const draw = () => {
    const holder = document.getElementById("curve");
    if (!holder || !window.uPlot || holder.childElementCount) return;
    const points = JSON.parse(holder.dataset.curve);
    if (points.length < 2 || points.every(([, lent, missing]) => !lent && !missing)) return;
    document.getElementById("curve-panel").hidden = false;
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const stepped = uPlot.paths.stepped({ align: 1 });
    const days = points[points.length - 1][0] - points[0][0] > 129600;
    const clock = (at) => new Date(at * 1000).toISOString().slice(days ? 5 : 11, days ? 10 : 16);
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const plot = new uPlot(
      {
        width: holder.clientWidth,
        height: 170,
        cursor: { y: false },
        scales: { y: { range: (_, low, high) => [0, Math.max(1, high)] } },
        axes: [{ ...axis, space: 80, values: (_, marks) => marks.map(clock) }, { ...axis, size: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 500, 1000, 5000] }],
        series: [
          { label: "at", value: (_, at) => (at == null ? "" : `${new Date(at * 1000).toISOString().slice(11, 19)} UTC`) },
          { label: "lent", stroke: colour("--green"), fill: colour("--green-soft"), width: 1.5, paths: stepped, points: { show: false } },
          { label: "missing", stroke: colour("--amber"), width: 1.5, paths: stepped, points: { show: false } },
        ],
        tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      },
      [points.map((point) => point[0]), points.map((point) => point[1]), points.map((point) => point[2])],
      holder,
    );
    addEventListener("resize", () => plot.setSize({ width: holder.clientWidth, height: 170 }));
  };
  addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select, textarea, .scroll")) return;
    const id = { ArrowLeft: "earlier", ArrowRight: "later" }[event.key];
    if (id) document.getElementById(id)?.click();
  });
  // Where the drawing is wider than the screen, the present is in sight first.
  const holder = document.querySelector(".scroll");
  if (holder) holder.scrollLeft = holder.scrollWidth;
  document.body.addEventListener("htmx:after:swap", draw);
  draw();
})();
