import type { Schemas } from "../../api/client";
import { Progress } from "../../design";
import { count } from "../../lib/format";

/** Steps done of steps planned, as a bar. */
export function RunProgress({ run }: { run: Schemas["RunRow"] }) {
  const tone =
    run.state === "failed"
      ? "bad"
      : run.state === "succeeded"
        ? "ok"
        : run.state === "cancelled"
          ? "neutral"
          : "accent";
  return (
    <div
      style={{
        display: "grid",
        gridTemplateColumns: "minmax(60px, 1fr) auto",
        alignItems: "center",
        gap: 10,
      }}
    >
      <Progress
        label={`Run of ${run.task.name}`}
        value={run.steps_done}
        max={run.steps_planned}
        tone={tone}
      />
      <span className="num dim" style={{ fontSize: 12, whiteSpace: "nowrap" }}>
        {count(run.steps_done)} / {count(run.steps_planned)} steps
      </span>
    </div>
  );
}
