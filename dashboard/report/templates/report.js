(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const charts = [...document.querySelectorAll("[data-chart]")];
  const dark = matchMedia("(prefers-color-scheme: dark)"), paper = matchMedia("print");
  const WIDE = 900, PAPER = 718; // px; on A4 190 mm lie between the margins, where the wide ones are shrunk
  const config = { displaylogo: false, modeBarButtons: [["toImage"]], responsive: false };

  function draw(printed) {
    for (const chart of charts) {
      chart.style.zoom = printed ? PAPER / WIDE : "";
      const width = printed ? WIDE : chart.clientWidth;
      const figure = figures[chart.dataset.chart][!printed && dark.matches ? "dark" : "light"][
        width >= WIDE ? "wide" : "narrow"];
      const { data, layout } = structuredClone(figure);
      Plotly.react(chart, data, { ...layout, width, autosize: false }, config);
    }
  }

  draw(paper.matches);
  dark.addEventListener("change", () => draw(paper.matches));
  paper.addEventListener("change", () => draw(paper.matches));
  addEventListener("beforeprint", () => draw(true));
  addEventListener("afterprint", () => draw(false));
  addEventListener("resize", () => paper.matches || draw(false));
})();
