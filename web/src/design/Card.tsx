import type { ReactNode } from "react";
import css from "./Card.module.css";

/** A surface with a heading. `flush` lets a table or list reach its edges. */
export function Card({
  title,
  note,
  actions,
  flush,
  children,
}: {
  title?: ReactNode;
  note?: ReactNode;
  actions?: ReactNode;
  flush?: boolean;
  children: ReactNode;
}) {
  return (
    <section className={css.card}>
      {(title || actions) && (
        <header className={css.head}>
          <div className={css.titles}>
            <h2 className={css.title}>{title}</h2>
            {note && <p className={css.note}>{note}</p>}
          </div>
          {actions && <div className="row wrap">{actions}</div>}
        </header>
      )}
      <div className={flush ? css.flush : css.body}>{children}</div>
    </section>
  );
}
