import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useShownTheme } from "../lib/theme";
import css from "./Chart.module.css";
import { chartOptions, stacked } from "./chartOptions";

export type Series = {
  name: string;
  /** A colour token, for instance `--c-1`. */
  color: string;
  values: (number | null)[];
  dashed?: boolean;
};

export type ChartProps = {
  /** What a screen reader calls it. */
  label: string;
  x: number[];
  /** `time`: seconds since 1970; `step`: counts. */
  xKind: "time" | "step";
  xFormat: (x: number) => string;
  yFormat: (y: number) => string;
  kind?: "lines" | "bars";
  series: Series[];
  height?: number;
  /** Fixed ends of the scale; null follows the data. */
  yRange?: [number | null, number | null];
  /** Charts with the same key share their cursor. */
  sync?: string;
};

/** Lines or stacked bars over time or steps. The legend tells the values under the cursor; else the last, or the sum. */
export function Chart(props: ChartProps) {
  const { label, x, series, kind = "lines", height = 180, xFormat, yFormat } = props;
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [at, setAt] = useState<number | null>(null);
  const theme = useShownTheme();
  const sparse = series.map((line) => line.values.filter((value) => value !== null).length < 3).join();
  const shape = `${kind} ${height} ${props.xKind} ${series.map((line) => line.name + line.color).join("|")} ${sparse} ${theme}`;
  const data = useMemo(
    () => (kind === "bars" ? stacked(x, series) : [x, ...series.map((line) => line.values)]),
    [x, series, kind],
  );
  const newest = useRef(data);
  newest.current = data;

  useEffect(() => {
    const node = holder.current;
    if (!node) return;
    const made = new uPlot(
      chartOptions(latest, node, height, setAt),
      newest.current as uPlot.AlignedData,
      node,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: node.clientWidth, height }));
    watch.observe(node);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, height]);

  useEffect(() => plot.current?.setData(data as uPlot.AlignedData), [data]);

  const shown = at ?? x.length - 1;
  const value = (line: Series) => {
    const y =
      at !== null
        ? line.values[at]
        : kind === "bars"
          ? sum(line.values)
          : line.values.findLast((v) => v !== null);
    return y === null || y === undefined ? "–" : yFormat(y);
  };
  const where = at === null && kind === "bars" ? "in all" : x[shown] === undefined ? "" : xFormat(x[shown]);
  return (
    <figure className={css.figure} aria-label={label}>
      <figcaption className={css.legend}>
        {series.map((line) => (
          <span key={line.name} className={css.entry}>
            <span
              className={css.swatch}
              style={{ background: `var(${line.color})` }}
              data-dashed={line.dashed || undefined}
              aria-hidden
            />
            <span className={css.name}>{line.name}</span>
            <span className={css.value}>{value(line)}</span>
          </span>
        ))}
        <span className={css.where}>{where}</span>
      </figcaption>
      <div ref={holder} className={css.plot} style={{ height }} aria-hidden />
    </figure>
  );
}

function sum(values: (number | null)[]): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}
