import css from "./IntervalBar.module.css";

/** An estimate with its interval on a scale from 0 to 1, and the bar that it has to clear. */
export function IntervalBar({
  value,
  low,
  high,
  bar,
  tone = "--c-1",
  label,
}: {
  value: number;
  low: number;
  high: number;
  bar?: number | null;
  tone?: string;
  label: string;
}) {
  const at = (share: number) => `${Math.min(1, Math.max(0, share)) * 100}%`;
  return (
    <div className={css.scale} role="img" aria-label={label}>
      {[0, 0.25, 0.5, 0.75, 1].map((tick) => (
        <span key={tick} className={css.tick} style={{ left: at(tick) }} />
      ))}
      {bar !== null && bar !== undefined && <span className={css.bar} style={{ left: at(bar) }} />}
      <span
        className={css.whisker}
        style={{ left: at(low), right: at(1 - high), background: `var(${tone})` }}
      />
      <span className={css.dot} style={{ left: at(value), background: `var(${tone})` }} />
    </div>
  );
}
