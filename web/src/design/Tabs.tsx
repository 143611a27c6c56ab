import { useId, useRef, type KeyboardEvent, type ReactNode } from "react";
import css from "./Tabs.module.css";

export type Tab = { id: string; label: ReactNode; content: () => ReactNode };

/** Panels of which one shows. Arrow keys move between the tabs. */
export function Tabs({
  label,
  tabs,
  chosen,
  onChoose,
}: {
  label: string;
  tabs: Tab[];
  chosen: string;
  onChoose: (id: string) => void;
}) {
  const base = useId();
  const list = useRef<HTMLDivElement>(null);
  const shown = tabs.find((tab) => tab.id === chosen) ?? tabs[0];

  function onKeyDown(event: KeyboardEvent) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !shown) return;
    const next = tabs[(tabs.indexOf(shown) + step + tabs.length) % tabs.length];
    if (!next) return;
    onChoose(next.id);
    list.current?.querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus();
  }

  return (
    <div>
      <div className={css.list} role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            data-tab={tab.id}
            id={`${base}-${tab.id}`}
            aria-selected={tab === shown}
            aria-controls={`${base}-panel`}
            tabIndex={tab === shown ? 0 : -1}
            className={`${css.tab} ${tab === shown ? css.on : ""}`}
            onClick={() => onChoose(tab.id)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        id={`${base}-panel`}
        aria-labelledby={`${base}-${shown?.id}`}
        className={css.panel}
      >
        {shown?.content()}
      </div>
    </div>
  );
}

/** A small choice between a few values. */
export function Segmented<T extends string>({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: { value: T; label: ReactNode; title?: string }[];
  value: T;
  onChange: (value: T) => void;
}) {
  return (
    <div className={css.segments} role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          title={option.title}
          aria-label={option.title}
          aria-pressed={option.value === value}
          className={css.segment}
          onClick={() => onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </div>
  );
}
