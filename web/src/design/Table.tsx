import type { KeyboardEvent, MouseEvent, ReactNode } from "react";
import { Link, useNavigate } from "react-router";
import css from "./Table.module.css";

export type Column<T> = {
  head: ReactNode;
  cell: (row: T) => ReactNode;
  align?: "right";
  width?: string;
  /** This cell carries the row's link, so that keyboard and screen reader find it. */
  primary?: boolean;
  /** Left out on narrow screens. */
  minor?: boolean;
};

/** Rows of one kind. With `href` or `onOpen` the whole row answers to a click, its primary cell to the keyboard. */
export function Table<T>({
  label,
  columns,
  rows,
  rowKey,
  href,
  onOpen,
  selected,
  fresh,
}: {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  href?: (row: T) => string;
  onOpen?: (row: T) => void;
  selected?: string;
  fresh?: ReadonlySet<string>;
}) {
  const navigate = useNavigate();
  const opens = Boolean(href || onOpen);

  const open = (row: T) => (event: MouseEvent) => {
    if ((event.target as HTMLElement).closest("a, button, input, select")) return;
    if (window.getSelection()?.toString()) return;
    if (onOpen) onOpen(row);
    else if (href) void navigate(href(row));
  };

  return (
    <div className={css.scroll} tabIndex={-1}>
      <table className={css.table} aria-label={label} onKeyDown={moveBetweenRows}>
        <thead>
          <tr>
            {columns.map((column, place) => (
              <th key={place} scope="col" style={{ width: column.width }} className={cellClass(column)}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const key = rowKey(row);
            const state = `${opens ? css.opens : ""} ${selected === key ? css.selected : ""} ${fresh?.has(key) ? css.fresh : ""}`;
            return (
              <tr key={key} className={state} onClick={opens ? open(row) : undefined}>
                {columns.map((column, place) => (
                  <td key={place} className={cellClass(column)}>
                    {column.primary && href ? (
                      <Link className={css.primary} to={href(row)}>
                        {column.cell(row)}
                      </Link>
                    ) : column.primary && onOpen ? (
                      <button type="button" className={css.primary} onClick={() => onOpen(row)}>
                        {column.cell(row)}
                      </button>
                    ) : (
                      column.cell(row)
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function cellClass<T>(column: Column<T>): string {
  return `${column.align === "right" ? css.right : ""} ${column.minor ? css.minor : ""}`;
}

/** Arrow up and down walk between the rows' primary cells. */
function moveBetweenRows(event: KeyboardEvent<HTMLTableElement>): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const stops = [...event.currentTarget.querySelectorAll<HTMLElement>(`.${css.primary}`)];
  const next =
    stops[stops.indexOf(document.activeElement as HTMLElement) + (event.key === "ArrowDown" ? 1 : -1)];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
