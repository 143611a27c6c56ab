import type { Schemas } from "../../api/client";
import { Badge, Card, EmptyState } from "../../design";
import { percent, plural } from "../../lib/format";
import css from "./RubricCard.module.css";

type Question = { name: string; question: string; weight?: number };

export function RubricCard({ rubric }: { rubric: Schemas["RubricOut"] | null }) {
  const criteria = (rubric?.criteria ?? []) as Question[];
  const vetoes = (rubric?.vetoes ?? []) as Question[];
  const total = criteria.reduce((sum, criterion) => sum + (criterion.weight ?? 1), 0);
  return (
    <Card
      title="Rubric"
      note={rubric ? `version ${rubric.version}: what a good answer is` : undefined}
      flush={!rubric}
    >
      {!rubric ? (
        <EmptyState title="No rubric yet">
          The first run writes one that compares answers with the request.
        </EmptyState>
      ) : (
        <ul className={css.list}>
          {criteria.map((criterion) => (
            <li key={criterion.name}>
              <div className="row">
                <strong>{criterion.name}</strong>
                <Badge tone="accent">{percent((criterion.weight ?? 1) / total)}</Badge>
              </div>
              <p className="muted">{criterion.question}</p>
            </li>
          ))}
          {vetoes.map((veto) => (
            <li key={veto.name}>
              <div className="row">
                <strong>{veto.name}</strong>
                <Badge tone="bad">veto: reward 0</Badge>
              </div>
              <p className="muted">{veto.question}</p>
            </li>
          ))}
          {rubric.checks.length > 0 && (
            <li className="muted">{plural(rubric.checks.length, "deterministic check")}</li>
          )}
        </ul>
      )}
    </Card>
  );
}
