import type { ReactNode } from "react";
import css from "./Badge.module.css";

export type Tone = "neutral" | "accent" | "ok" | "warn" | "bad" | "info";

/** A word of state. `pulse` marks what is going on now. */
export function Badge({
  tone = "neutral",
  dot,
  pulse,
  title,
  children,
}: {
  tone?: Tone;
  dot?: boolean;
  pulse?: boolean;
  title?: string;
  children: ReactNode;
}) {
  return (
    <span className={`${css.badge} ${css[tone]}`} title={title}>
      {(dot || pulse) && <span className={`${css.dot} ${pulse ? css.pulse : ""}`} aria-hidden />}
      {children}
    </span>
  );
}
