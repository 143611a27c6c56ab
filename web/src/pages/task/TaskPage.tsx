import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Play } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useParams } from "react-router";
import { api, ok, type Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import {
  Button,
  Card,
  Chart,
  EmptyState,
  Failure,
  Loading,
  Page,
  Stat,
  Stats,
  Table,
  useToast,
} from "../../design";
import { count, day, ms, percent, plural, usd } from "../../lib/format";
import { TaskState } from "../shared/badges";
import { daysUpTo } from "../shared/days";
import { RunsTable } from "../run/RunsTable";
import { RubricCard } from "./RubricCard";
import { StartRun } from "./StartRun";
import { TaskStudents } from "./TaskStudents";

type Task = Schemas["TaskDetail"];

export function TaskPage() {
  const { taskId = "" } = useParams();
  const { q, to } = useProject();
  const { data: task, error } = useQuery(q.task(taskId));
  const [starting, setStarting] = useState(false);
  if (error) return <Failure error={error} />;
  if (!task) return <Loading what="the task" />;
  return (
    <Page
      title={task.name}
      crumbs={[{ label: "Tasks", to: to("tasks") }]}
      badge={<TaskState state={task.state} />}
      about={task.system_preview || task.slug}
      actions={
        <>
          <ChangeState task={task} />
          <Button kind="primary" icon={<Play size={14} />} onClick={() => setStarting(true)}>
            Start run
          </Button>
        </>
      }
    >
      <Numbers task={task} />
      <Volume task={task} />
      <Runs taskId={taskId} />
      <TaskStudents taskId={taskId} />
      <div className="grid-2">
        <RubricCard rubric={task.rubric} />
        <Datasets task={task} />
      </div>
      {starting && <StartRun task={task} onClose={() => setStarting(false)} />}
    </Page>
  );
}

function Numbers({ task }: { task: Task }) {
  const { to } = useProject();
  return (
    <Stats>
      <Stat
        label="Calls"
        value={count(task.calls)}
        note={
          <Link className="link" to={to(`calls?task=${task.id}`)}>
            show them
          </Link>
        }
      />
      <Stat
        label="Trainable"
        value={count(task.trainable_calls)}
        note={task.calls ? percent(task.trainable_calls / task.calls) : "no calls"}
      />
      <Stat
        label="Answered by student"
        value={task.calls ? percent(task.student_calls / task.calls) : "–"}
        note={plural(task.student_calls, "call")}
      />
      <Stat label="Latency p50" value={ms(task.p50_ms)} note={`p95 ${ms(task.p95_ms)}`} />
      <Stat
        label="Spend"
        value={usd(task.spend)}
        note={task.calls ? `${usd((Number(task.spend) / task.calls) * 1000)} per 1,000 calls` : "no calls"}
      />
      <Stat
        label="Model names"
        value={task.aliases.length}
        note={task.aliases.map((alias) => alias.alias).join(", ") || "none"}
      />
    </Stats>
  );
}

function Volume({ task }: { task: Task }) {
  const { x, days } = useMemo(() => {
    const found = new Map(task.days.map((entry) => [Date.parse(entry.day) / 1000, entry]));
    const today = Math.floor(Date.now() / 86_400_000) * 86_400;
    const x = daysUpTo(today, 30, Math.min(...found.keys()));
    return { x, days: x.map((moment) => found.get(moment)) };
  }, [task.days]);
  return (
    <Card title="Calls per day" note="by who answered, at most 30 days">
      <Chart
        label="Calls per day by who answered"
        kind="bars"
        height={140}
        x={x}
        xKind="time"
        xFormat={(moment) => day(new Date(moment * 1000).toISOString())}
        yFormat={(n) => count(Math.round(n))}
        series={[
          { name: "upstream", color: "--c-upstream", values: days.map((entry) => entry?.upstream ?? 0) },
          { name: "student", color: "--c-student", values: days.map((entry) => entry?.student ?? 0) },
          { name: "failed", color: "--c-failed", values: days.map((entry) => entry?.failed ?? 0) },
        ]}
      />
    </Card>
  );
}

function Runs({ taskId }: { taskId: string }) {
  const { q } = useProject();
  const { data } = useQuery(q.runs(taskId));
  return (
    <Card title="Runs" flush>
      {data?.length === 0 && (
        <EmptyState title="Nothing has been learned yet">
          A run freezes this task’s calls, warms a small model up on some of them, then lets a judge compare
          its answers until they hold up against the teacher’s.
        </EmptyState>
      )}
      {data && data.length > 0 && <RunsTable runs={data} />}
    </Card>
  );
}

function Datasets({ task }: { task: Task }) {
  return (
    <Card title="Dataset versions" note="frozen, never changed" flush>
      {task.dataset_versions.length === 0 ? (
        <EmptyState title="No version yet">A run freezes one when it starts.</EmptyState>
      ) : (
        <Table
          label="Dataset versions"
          rows={task.dataset_versions}
          rowKey={(version) => version.id}
          columns={[
            { head: "Version", cell: (version) => `v${version.version}` },
            { head: "Train", align: "right", cell: (version) => countOf(version.counts.train) },
            { head: "Validation", align: "right", cell: (version) => countOf(version.counts.validation) },
            { head: "Test", align: "right", cell: (version) => countOf(version.counts.test) },
            { head: "Duplicates", align: "right", cell: (version) => countOf(version.counts.duplicates) },
            { head: "Test opened", align: "right", cell: (version) => plural(version.test_openings, "time") },
          ]}
        />
      )}
    </Card>
  );
}

function countOf(value: unknown): string {
  return typeof value === "number" ? count(value) : "–";
}

function ChangeState({ task }: { task: Task }) {
  const { id: project_id } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const change = useMutation({
    mutationFn: (state: "active" | "ignored") =>
      ok(
        api.PATCH("/api/projects/{project_id}/tasks/{task_id}", {
          params: { path: { project_id, task_id: task.id } },
          body: { state },
        }),
      ),
    onSuccess: (_, state) => {
      say(state === "active" ? "The task is taken up." : "The task is ignored from now on.");
      void client.invalidateQueries({ queryKey: [project_id, "tasks"] });
    },
    onError: (error) => say(error.message, true),
  });
  return (
    <>
      {task.state !== "ignored" && (
        <Button kind="ghost" busy={change.isPending} onClick={() => change.mutate("ignored")}>
          Ignore
        </Button>
      )}
      {task.state !== "active" && (
        <Button busy={change.isPending} onClick={() => change.mutate("active")}>
          Take up
        </Button>
      )}
    </>
  );
}
