import { ChevronRight } from "lucide-react";
import { Fragment, useEffect, type ReactNode } from "react";
import { Link } from "react-router";
import css from "./Page.module.css";

export type Crumb = { label: string; to: string };

/** A page's frame: where one is, what it shows, what one can do. */
export function Page({
  title,
  about,
  crumbs,
  badge,
  actions,
  children,
}: {
  title: string;
  about?: ReactNode;
  crumbs?: Crumb[];
  badge?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Stepdown`;
  }, [title]);
  return (
    <div className={css.page}>
      <header className={css.head}>
        <div className={css.titles}>
          {crumbs && (
            <nav className={css.crumbs} aria-label="Breadcrumb">
              {crumbs.map((crumb) => (
                <Fragment key={crumb.to}>
                  <Link to={crumb.to}>{crumb.label}</Link>
                  <ChevronRight size={12} aria-hidden />
                </Fragment>
              ))}
            </nav>
          )}
          <div className="row wrap">
            <h1 className={css.title}>{title}</h1>
            {badge}
          </div>
          {about && <p className={css.about}>{about}</p>}
        </div>
        {actions && <div className={`row wrap ${css.actions}`}>{actions}</div>}
      </header>
      <div className="stack">{children}</div>
    </div>
  );
}
