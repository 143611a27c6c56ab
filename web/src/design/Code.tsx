import { Check, Copy } from "lucide-react";
import { useState, type ReactNode } from "react";
import { Button } from "./Button";
import css from "./Code.module.css";

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  return (
    <Button
      kind="ghost"
      size="sm"
      aria-label={done ? "Copied" : label}
      title={label}
      icon={done ? <Check size={14} /> : <Copy size={14} />}
      onClick={() => {
        void navigator.clipboard.writeText(text).then(() => {
          setDone(true);
          setTimeout(() => setDone(false), 1500);
        });
      }}
    />
  );
}

export function CodeBlock({ code, label, tall }: { code: string; label: string; tall?: boolean }) {
  return (
    <figure className={css.block} aria-label={label}>
      <div className={css.copy}>
        <CopyButton text={code} label={`Copy ${label}`} />
      </div>
      <pre className={`${css.pre} ${tall ? css.tall : ""}`} tabIndex={0}>
        <code>{code}</code>
      </pre>
    </figure>
  );
}

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function coloured(text: string): ReactNode[] {
  const parts: ReactNode[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    const kind = match[1] ? (match[2] ? css.key : css.string) : match[3] ? css.word : css.number;
    parts.push(
      <span key={match.index} className={kind}>
        {match[1] ?? match[0]}
      </span>,
    );
    if (match[2]) parts.push(match[2]);
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}

/** A JSON value, indented and coloured. */
export function JsonView({ value, label }: { value: unknown; label: string }) {
  const text = JSON.stringify(value, null, 2) ?? "null";
  return (
    <figure className={css.block} aria-label={label}>
      <div className={css.copy}>
        <CopyButton text={text} label={`Copy ${label}`} />
      </div>
      <pre className={`${css.pre} ${css.tall}`} tabIndex={0}>
        <code>{coloured(text)}</code>
      </pre>
    </figure>
  );
}

/** Text of a model: as JSON where it is JSON, else as it came. `compact` keeps a short object on one line. */
export function ModelText({ text, compact }: { text: string; compact?: boolean }) {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return <div className={css.prose}>{text}</div>;
  }
  if (typeof value !== "object" || value === null) return <div className={css.prose}>{text}</div>;
  const line = JSON.stringify(value, null, 1).replace(/\s*\n\s*/g, " ");
  return (
    <pre className={css.inline}>
      {coloured(compact && line.length < 300 ? line : JSON.stringify(value, null, 2))}
    </pre>
  );
}
