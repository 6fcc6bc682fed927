// Draws the charts of a report from its data. Texts are drawn on a canvas, so none of them can be markup.
"use strict";
window.moot = window.moot || {};

(() => {
  // Colours of Okabe and Ito, which the colour-blind can tell apart, lightened for dark pages; markers and dashes repeat what they say.
  const LIGHT = ["#0072B2", "#D55E00", "#007A5A", "#A4497E", "#6B6B6B", "#9A6A00", "#2B2B2B", "#5A4FCF"];
  const DARK = ["#56B4E9", "#FF8A3D", "#3FCF9F", "#E59AC4", "#BDBDBD", "#F0C243", "#FFFFFF", "#A9A1FF"];
  const MARKERS = ["circle", "rect", "triangle", "crossRot", "rectRot", "star", "cross", "rectRounded"];
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [12, 4], [4, 4], [1, 4], [9, 3, 9, 3, 2, 3]];
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = [];
  let printing = false; // on paper, which is light
  const isDark = () => dark.matches && !printing;

  const hidden = (dataset) => Object.assign(dataset, { isPart: true, pointRadius: 0, pointHitRadius: 0 });

  function style(series, place) {
    const index = (series.style ?? place) % MARKERS.length;
    return { color: (isDark() ? DARK : LIGHT)[index], marker: MARKERS[index], dash: DASHES[index] };
  }

  function points(series, values) {
    return series.x.map((x, i) => ({ x, y: values[i], i }));
  }

  function intervals(series, color) {
    const data = [];
    series.x.forEach((x, i) => {
      if (series.low[i] !== null && series.high[i] !== null) {
        data.push({ x, y: series.low[i] }, { x, y: series.high[i] }, { x, y: NaN });
      }
    });
    return hidden({ type: "line", label: series.name, data, borderColor: color, borderWidth: 1.2, spanGaps: false });
  }

  function band(series, color) {
    const edge = { type: "line", label: series.name, borderWidth: 0, backgroundColor: color + "33" };
    return [
      hidden({ ...edge, data: points(series, series.low), fill: false }),
      Object.assign(hidden({ ...edge, data: points(series, series.high), fill: "-1" }), { isPart: series.mark !== "band" }),
    ];
  }

  function datasets(series, place) {
    const { color, marker, dash } = style(series, place);
    const own = {
      label: series.sampled ? `${series.name} (${series.sampled})` : series.name, series, clip: 8, borderColor: color, backgroundColor: color, pointStyle: marker,
      data: series.y ? points(series, series.y) : [],
    };
    const made = [];
    if (series.low && series.mark !== "points" && series.mark !== "bars") made.push(...band(series, color));
    if (series.mark === "points") {
      made.push({ ...own, type: "scatter", pointRadius: series.x.length > 2000 ? 2 : 4, pointBorderWidth: 1.5 });
    } else if (series.mark === "bars") {
      made.push({ ...own, type: "bar", backgroundColor: color + "aa", borderWidth: 1 });
    } else if (series.y) {
      const radius = series.x.length > 60 ? 0 : 4;
      made.push({ ...own, type: "line", borderDash: dash, borderWidth: 2, pointRadius: radius, spanGaps: false });
    }
    if (series.low && (series.mark === "points" || series.mark === "bars")) made.push(intervals(series, color));
    return made;
  }

  // A guide spans the axes, whatever their ranges become.
  const guides = {
    id: "guides",
    afterDatasetsDraw(chart, _args, options) {
      const { ctx, chartArea: area, scales } = chart;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = options.color;
      ctx.setLineDash([5, 4]);
      ctx.font = "12px system-ui, sans-serif";
      for (const guide of options.lines || []) {
        const [x, y] = [scales.x.getPixelForValue(guide.x ?? 0), scales.y.getPixelForValue(guide.y ?? 0)];
        ctx.beginPath();
        if (guide.x !== null) {
          const isRight = x > (area.left + area.right) / 2;
          ctx.textAlign = isRight ? "right" : "left";
          ctx.moveTo(x, area.top);
          ctx.lineTo(x, area.bottom);
          ctx.fillText(guide.label, isRight ? x - 4 : x + 4, area.top + 24);
        } else {
          ctx.textAlign = "left";
          ctx.moveTo(area.left, y);
          ctx.lineTo(area.right, y);
          ctx.fillText(guide.label, area.left + 4, y < area.top + 16 ? y + 14 : y - 4);
        }
        ctx.stroke();
      }
      ctx.restore();
    },
  };

  function axis(data, place, category, text, line, guided, whole = false) {
    const [min, max] = data.range || [];
    const ends = guided.length ? { suggestedMin: Math.min(...guided), suggestedMax: Math.max(...guided) } : {};
    const type = category ? "category" : data.log ? "logarithmic" : "linear";
    return {
      ...ends, type, position: place, min, max, title: { display: Boolean(data.label), text: data.label, color: text },
      ticks: whole ? { color: text, precision: 0 } : { color: text }, grid: { color: line }, offset: category,
    };
  }

  function label(item) {
    const { series } = item.dataset;
    if (!series) return null;
    const { i, x, y } = item.raw;
    const interval = series.low && series.low[i] !== null ? ` [${series.low[i]}, ${series.high[i]}]` : "";
    const of = series.cases && moot.visible ? `, case ${moot.visible(series.cases[i])}` : "";
    return `${series.name}: ${x}, ${y}${interval}${of}`;
  }

  // The case of the point under the pointer; null where there is none.
  function caseAt(chart, found) {
    if (!found.length) return null;
    const { series, data } = chart.data.datasets[found[0].datasetIndex];
    return series && series.cases ? series.cases[data[found[0].index].i] : null;
  }

  function config(data) {
    const text = isDark() ? "#e8e8e8" : "#1c1c1c";
    const line = isDark() ? "#3d434c" : "#e2e2e2";
    const first = data.series.find((series) => series.x.length);
    const areWhole = (values) => (values || []).every((value) => value === null || Number.isInteger(value));
    const isWhole = (...of) => data.series.every((each) => of.every((name) => areWhole(each[name])));
    const category = Boolean(first) && typeof first.x[0] === "string";
    const [across, up] = ["x", "y"].map((of) => data.guides.map((guide) => guide[of]).filter((at) => at !== null));
    return {
      data: { datasets: data.series.flatMap(datasets) },
      plugins: [guides],
      options: {
        responsive: true, maintainAspectRatio: false, animation: false, normalized: true,
        interaction: { mode: "nearest", intersect: true },
        scales: {
          x: axis(data.x, "bottom", category, text, line, across, isWhole("x")),
          y: axis(data.y, "left", false, text, line, up, !data.y.range && isWhole("y", "low", "high")),
        },
        plugins: {
          guides: { lines: data.guides, color: text },
          tooltip: { filter: (item) => Boolean(item.dataset.series), callbacks: { title: () => "", label } },
          legend: {
            display: data.series.length > 1 || data.series.some((series) => series.sampled),
            labels: {
              color: text, usePointStyle: true, boxHeight: 7,
              filter: (item, all) => !all.datasets[item.datasetIndex].isPart,
            },
            onClick: null,
          },
        },
        onHover(event, found, chart) {
          event.native.target.style.cursor = caseAt(chart, found) === null ? "" : "pointer";
        },
        onClick(_event, found, chart) {
          const id = caseAt(chart, found);
          if (id !== null) moot.openCase(id);
        },
      },
    };
  }

  moot.drawChart = (canvas, data) => {
    const made = new Chart(canvas, config(data));
    drawn.push({ canvas, data, made });
    return made;
  };

  // New numbers for a chart that is drawn: in place, without animation.
  moot.updateChart = (canvas, data) => {
    const known = drawn.find((each) => each.canvas === canvas);
    if (!known) {
      moot.drawChart(canvas, data);
      return;
    }
    known.data = data;
    const { data: { datasets }, options } = config(data);
    known.made.data.datasets = datasets;
    known.made.options = options;
    known.made.update("none");
  };

  moot.redrawCharts = () => {
    for (const each of drawn) {
      each.made.destroy();
      each.made = new Chart(each.canvas, config(each.data));
    }
  };
  dark.addEventListener("change", moot.redrawCharts);

  function print(isOn) {
    printing = isOn;
    if (dark.matches) moot.redrawCharts();
    else drawn.forEach((each) => each.made.resize());
  }
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
})();
