import { useQuery } from "@tanstack/react-query";
import { ListTree } from "lucide-react";
import { useProject } from "../../app/project";
import { Card, EmptyState, Failure, Loading, Page, Table } from "../../design";
import { count, ms, percent, usd } from "../../lib/format";
import { Ago, TaskState } from "../shared/badges";

export function TasksPage() {
  const { q, to } = useProject();
  const { data, error } = useQuery(q.tasks);
  return (
    <Page
      title="Tasks"
      about="Narrow jobs that your app sends again and again: each may get a student of its own."
    >
      {error && <Failure error={error} />}
      <Card flush>
        {!data && !error && <Loading what="tasks" />}
        {data?.length === 0 && (
          <EmptyState icon={<ListTree size={18} />} title="No task recognised yet">
            Calls with the same system prompt, tools and response format are one job. When some twenty of a
            kind have come, it appears here by itself. You can also name it: send the header{" "}
            <code>x-stepdown-task</code> or metadata with the call.
          </EmptyState>
        )}
        {data && data.length > 0 && (
          <Table
            label="Tasks"
            rows={data}
            rowKey={(task) => task.id}
            href={(task) => to(`tasks/${task.id}`)}
            columns={[
              {
                head: "Task",
                primary: true,
                cell: (task) => (
                  <span style={{ display: "grid" }}>
                    <span>{task.name}</span>
                    <span className="clip dim" style={{ maxWidth: "44ch", fontSize: 12, fontWeight: 400 }}>
                      {task.system_preview || task.slug}
                    </span>
                  </span>
                ),
              },
              { head: "State", cell: (task) => <TaskState state={task.state} /> },
              { head: "Calls", align: "right", cell: (task) => count(task.calls) },
              { head: "Trainable", align: "right", minor: true, cell: (task) => count(task.trainable_calls) },
              {
                head: "By student",
                align: "right",
                cell: (task) => (task.calls ? percent(task.student_calls / task.calls) : "–"),
              },
              { head: "p50", align: "right", cell: (task) => ms(task.p50_ms) },
              { head: "p95", align: "right", minor: true, cell: (task) => ms(task.p95_ms) },
              { head: "Spend", align: "right", cell: (task) => usd(task.spend) },
              {
                head: "Last call",
                align: "right",
                minor: true,
                cell: (task) => <Ago time={task.last_call_at} />,
              },
            ]}
          />
        )}
      </Card>
    </Page>
  );
}
