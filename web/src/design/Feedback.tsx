import { CircleAlert, LoaderCircle } from "lucide-react";
import type { ReactNode } from "react";
import css from "./Feedback.module.css";

/** Nothing here yet: says why, and what to do next. */
export function EmptyState({
  icon,
  title,
  children,
  action,
}: {
  icon?: ReactNode;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className={css.empty}>
      {icon && <div className={css.icon}>{icon}</div>}
      <h3 className={css.title}>{title}</h3>
      {children && <div className={css.text}>{children}</div>}
      {action && <div className={css.action}>{action}</div>}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <div className={css.loading} role="status">
      <LoaderCircle size={16} className={css.spin} aria-hidden />
      <span>Loading {what}…</span>
    </div>
  );
}

export function Failure({ error, action }: { error: Error; action?: ReactNode }) {
  return (
    <div className={css.failure} role="alert">
      <CircleAlert size={16} aria-hidden />
      <span>{error.message}</span>
      {action}
    </div>
  );
}

export function Note({
  tone = "info",
  children,
}: {
  tone?: "info" | "warn" | "bad" | "ok";
  children: ReactNode;
}) {
  return <div className={`${css.note} ${css[tone]}`}>{children}</div>;
}

/** How far something is. Without `max` it only says that it is under way. */
export function Progress({
  label,
  value,
  max,
  tone = "accent",
}: {
  label: string;
  value: number;
  max: number;
  tone?: "accent" | "ok" | "bad" | "neutral";
}) {
  const share = max > 0 ? Math.min(1, value / max) : 0;
  return (
    <div
      className={css.track}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={value}
    >
      <div className={`${css.bar} ${css[tone]}`} style={{ width: `${share * 100}%` }} />
    </div>
  );
}
