import type { ReactNode } from "react";
import css from "./Facts.module.css";

/** Names and values side by side. Values that are null or undefined are left out. */
export function Facts({ items }: { items: [string, ReactNode][] }) {
  return (
    <dl className={css.facts}>
      {items
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name} className={css.fact}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
