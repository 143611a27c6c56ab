import type { Schemas } from "../../api/client";
import { Card, Facts, JsonView } from "../../design";
import { count, full } from "../../lib/format";

export function Configuration({ run }: { run: Schemas["RunDetail"] }) {
  const counts = Object.entries(run.dataset_counts ?? {})
    .filter(([, value]) => typeof value === "number")
    .map(([name, value]) => `${count(value as number)} ${name}`)
    .join(", ");
  return (
    <div className="stack">
      <Card title="What it works with">
        <Facts
          items={[
            ["Base model", run.base_model],
            ["Judge", run.judge?.name ?? "none"],
            ["Rubric", run.rubric_version === null ? "not chosen yet" : `version ${run.rubric_version}`],
            ["Dataset", run.dataset_version === null ? "not frozen yet" : `version ${run.dataset_version}`],
            ["Rows", counts || null],
            ["Asked for", full(run.created_at)],
            ["Ended", run.finished_at ? full(run.finished_at) : null],
            ["Run", <span className="mono">{run.id}</span>],
          ]}
        />
      </Card>
      <div className="grid-2">
        <Card title="Configuration">
          <JsonView label="configuration" value={run.config} />
        </Card>
        <Card title="Bars" note="declared before looking">
          <JsonView label="bars" value={run.bars} />
        </Card>
      </div>
    </div>
  );
}
