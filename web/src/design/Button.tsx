import { LoaderCircle } from "lucide-react";
import type { ButtonHTMLAttributes, ReactNode } from "react";
import css from "./Button.module.css";

export type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  kind?: "primary" | "secondary" | "ghost" | "danger";
  size?: "md" | "sm";
  icon?: ReactNode;
  busy?: boolean;
};

export function Button({ kind = "secondary", size = "md", icon, busy, children, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={rest.disabled || busy}
      className={`${css.button} ${css[kind]} ${css[size]} ${children ? "" : css.square} ${rest.className ?? ""}`}
    >
      {busy ? <LoaderCircle size={14} className={css.spin} aria-label="working" /> : icon}
      {children}
    </button>
  );
}
