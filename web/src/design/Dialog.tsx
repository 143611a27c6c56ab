import { X } from "lucide-react";
import { useEffect, useId, useRef, type FormEvent, type ReactNode } from "react";
import { Button } from "./Button";
import css from "./Dialog.module.css";

/** A modal window, or with `side` a drawer. The browser keeps focus inside and closes it on Escape. */
export function Dialog({
  title,
  about,
  side,
  wide,
  head,
  onClose,
  children,
}: {
  title: string;
  about?: ReactNode;
  side?: boolean;
  wide?: boolean;
  head?: ReactNode;
  onClose: () => void;
  children: ReactNode;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = ref.current;
    if (!dialog?.open) dialog?.showModal();
  }, []);
  return (
    <dialog
      ref={ref}
      aria-labelledby={heading}
      className={`${css.dialog} ${side ? css.side : ""} ${wide ? css.wide : ""}`}
      onClose={onClose}
      onClick={(event) => event.target === ref.current && ref.current?.close()}
    >
      <div className={css.inner}>
        <header className={css.head}>
          <div className={css.titles}>
            <h2 id={heading} className={css.title}>
              {title}
            </h2>
            {about && <div className={css.about}>{about}</div>}
          </div>
          <div className="row">
            {head}
            <Button
              kind="ghost"
              size="sm"
              aria-label="Close"
              icon={<X size={16} />}
              onClick={() => ref.current?.close()}
            />
          </div>
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** The form inside a dialog: fields, then what to do with them. */
export function DialogForm({
  submit,
  danger,
  busy,
  error,
  disabled,
  onSubmit,
  children,
}: {
  submit: string;
  danger?: boolean;
  busy: boolean;
  error?: Error | null;
  disabled?: boolean;
  onSubmit: () => void;
  children: ReactNode;
}) {
  function send(event: FormEvent) {
    event.preventDefault();
    onSubmit();
  }
  return (
    <form onSubmit={send} className={css.form}>
      <div className={css.fields}>{children}</div>
      {error && (
        <p className={css.error} role="alert">
          {error.message}
        </p>
      )}
      <footer className={css.foot}>
        <Button type="submit" kind={danger ? "danger" : "primary"} busy={busy} disabled={disabled}>
          {submit}
        </Button>
      </footer>
    </form>
  );
}
