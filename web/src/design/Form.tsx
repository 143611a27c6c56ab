import { Search } from "lucide-react";
import { useId, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes } from "react";
import css from "./Form.module.css";

/** A labelled control with its hint and what is wrong with it. */
export function Field({
  label,
  hint,
  error,
  children,
}: {
  label: string;
  hint?: ReactNode;
  error?: string;
  children: (id: string, describedBy: string | undefined) => ReactNode;
}) {
  const id = useId();
  const described = hint || error ? `${id}-hint` : undefined;
  return (
    <div className={css.field}>
      <label className={css.label} htmlFor={id}>
        {label}
      </label>
      {children(id, described)}
      {(hint || error) && (
        <p id={described} className={error ? css.error : css.hint} role={error ? "alert" : undefined}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}

export function Input(props: InputHTMLAttributes<HTMLInputElement>) {
  return (
    <input
      autoComplete="off"
      spellCheck={false}
      {...props}
      className={`${css.input} ${props.className ?? ""}`}
    />
  );
}

export function Select({
  options,
  ...rest
}: SelectHTMLAttributes<HTMLSelectElement> & { options: { value: string; label: string }[] }) {
  return (
    <select {...rest} className={`${css.input} ${css.select} ${rest.className ?? ""}`}>
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

export function SearchBox({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (text: string) => void;
}) {
  return (
    <span className={css.search}>
      <Search size={14} aria-hidden />
      <input
        type="search"
        className={css.input}
        placeholder={label}
        aria-label={label}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </span>
  );
}

export function Columns({ children }: { children: ReactNode }) {
  return <div className={css.columns}>{children}</div>;
}
