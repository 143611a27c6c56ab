// Owns how uPlot is set up for every chart: axes, colours from the tokens, cursor.
import type { RefObject } from "react";
import uPlot from "uplot";
import type { ChartProps, Series } from "./Chart";

/** Each series on top of those after it, so that drawing in order leaves every part visible. */
export function stacked(x: number[], series: Series[]): (number | null)[][] {
  const sums = new Array<number>(x.length).fill(0);
  const layers = [...series].reverse().map((line) =>
    line.values.map((value, place) => {
      sums[place] = (sums[place] ?? 0) + (value ?? 0);
      return sums[place];
    }),
  );
  return [x, ...layers.reverse()];
}

/** The colour behind a token: canvas knows no custom properties. */
function colour(node: HTMLElement, token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  node.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function lineSeries(node: HTMLElement, line: Series, points: boolean): uPlot.Series {
  const stroke = colour(node, line.color);
  return {
    label: line.name,
    stroke,
    width: 1.75,
    dash: line.dashed ? [4, 4] : undefined,
    spanGaps: true,
    points: { show: points, size: 5, fill: stroke },
  };
}

function barSeries(node: HTMLElement, line: Series): uPlot.Series {
  const fill = colour(node, line.color);
  return {
    label: line.name,
    fill,
    stroke: fill,
    width: 0,
    paths: uPlot.paths.bars?.({ size: [0.72, 44], radius: [0.12, 0], align: 0 }),
    points: { show: false },
  };
}

export function chartOptions(
  latest: RefObject<ChartProps>,
  node: HTMLElement,
  height: number,
  onCursor: (place: number | null) => void,
): uPlot.Options {
  const { kind = "lines", xKind, series, sync } = latest.current;
  const axis = {
    stroke: colour(node, "--text-3"),
    font: "11px 'Inter Variable', sans-serif",
    ticks: { show: false },
  };
  const grid = { stroke: colour(node, "--border"), width: 1 };
  return {
    width: node.clientWidth || 300,
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: kind === "lines", size: 7 },
      drag: { x: false, y: false },
      sync: sync ? { key: sync } : undefined,
    },
    scales: {
      x: { time: xKind === "time", range: (_, min, max) => xRange(kind, latest.current.x, min, max) },
      y: {
        range: (_, min, max) => {
          const [low, high] = latest.current.yRange ?? [kind === "bars" ? 0 : null, null];
          // All zeros leave no range of their own: then from 0 to 1.
          const flat = !min && !max;
          const [softMin, softMax] = uPlot.rangeNum(min ?? 0, flat ? 1 : (max ?? 1), 0.1, true);
          return [low ?? softMin ?? 0, high ?? softMax ?? 1];
        },
      },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 22,
        gap: 4,
        space: 64,
        incrs: xKind === "step" ? wholeSteps : undefined,
        values: (_, ticks) =>
          ticks.map((tick) => (xKind === "step" ? String(tick) : latest.current.xFormat(tick))),
      },
      {
        ...axis,
        grid,
        size: 54,
        gap: 6,
        space: 34,
        values: (_, ticks) => ticks.map((tick) => latest.current.yFormat(tick)),
      },
    ],
    series: [
      {},
      ...series.map((line) =>
        kind === "bars" ? barSeries(node, line) : lineSeries(node, line, isSparse(line)),
      ),
    ],
    hooks: {
      setCursor: [
        (u) => onCursor(u.cursor.left === undefined || u.cursor.left < 0 ? null : (u.cursor.idx ?? null)),
      ],
    },
  };
}

/** A few numbers with gaps between them: marked, or a single one could not be seen. */
function isSparse(line: Series): boolean {
  const known = line.values.filter((value) => value !== null).length;
  return known < 3 || known < line.values.length / 2;
}

const wholeSteps = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

/** Half a bar of room at both ends; a single point in the middle. */
function xRange(kind: "lines" | "bars", x: number[], min: number, max: number): [number, number] {
  const gap = x.length > 1 ? (x[1] as number) - (x[0] as number) : 1;
  if (kind === "bars") return [min - gap / 2, max + gap / 2];
  return min === max ? [min - 1, max + 1] : [min, max];
}
