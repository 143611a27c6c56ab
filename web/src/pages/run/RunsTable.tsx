import type { Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { Table } from "../../design";
import { usd } from "../../lib/format";
import { Ago, RunState } from "../shared/badges";
import { RunProgress } from "./RunProgress";

export function RunsTable({ runs, withTask }: { runs: Schemas["RunRow"][]; withTask?: boolean }) {
  const { to } = useProject();
  return (
    <Table
      label="Runs, newest first"
      rows={runs}
      rowKey={(run) => run.id}
      href={(run) => to(`runs/${run.id}`)}
      columns={[
        {
          head: withTask ? "Task" : "Run",
          primary: true,
          cell: (run) => (withTask ? run.task.name : <span className="mono">{run.id.slice(-8)}</span>),
        },
        { head: "State", cell: (run) => <RunState state={run.state} /> },
        { head: "Phase", cell: (run) => run.phase },
        { head: "Progress", width: "32%", cell: (run) => <RunProgress run={run} /> },
        { head: "Judge cost", align: "right", minor: true, cell: (run) => usd(run.judge_spend) },
        { head: "Started", align: "right", cell: (run) => <Ago time={run.started_at ?? run.created_at} /> },
      ]}
    />
  );
}
