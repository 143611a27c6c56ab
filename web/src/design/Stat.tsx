import type { ReactNode } from "react";
import css from "./Stat.module.css";

export function Stats({ children }: { children: ReactNode }) {
  return <dl className={css.stats}>{children}</dl>;
}

/** One number with its name, and a line that puts it in place. */
export function Stat({ label, value, note }: { label: string; value: ReactNode; note?: ReactNode }) {
  return (
    <div className={css.stat}>
      <dt className={css.label}>{label}</dt>
      <dd className={css.value}>{value}</dd>
      {note && <dd className={css.note}>{note}</dd>}
    </div>
  );
}
