// Owns showing an answer beside its reference: field by field where both are JSON objects.
import { ModelText } from "../../design";
import css from "./Compare.module.css";

export function Compare({ output, reference, name }: { output: string; reference: string; name: string }) {
  const left = asObject(output);
  const right = asObject(reference);
  if (!left || !right)
    return (
      <div className={css.sides}>
        <Side title={name} text={output} />
        <Side title="Teacher" text={reference} />
      </div>
    );
  const fields = [...new Set([...Object.keys(right), ...Object.keys(left)])];
  return (
    <table className={css.table}>
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">{name}</th>
          <th scope="col">Teacher</th>
        </tr>
      </thead>
      <tbody>
        {fields.map((field) => {
          const same = text(left[field]) === text(right[field]);
          return (
            <tr key={field} data-differs={!same || undefined}>
              <th scope="row">{field}</th>
              <td>{text(left[field])}</td>
              <td>{text(right[field])}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Side({ title, text: content }: { title: string; text: string }) {
  return (
    <div className={css.side}>
      <div className={css.title}>{title}</div>
      <ModelText text={content} />
    </div>
  );
}

function asObject(content: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(content);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function text(value: unknown): string {
  return value === undefined ? "missing" : typeof value === "string" ? value : JSON.stringify(value);
}
