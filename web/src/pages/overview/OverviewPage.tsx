import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { isActive } from "../../api/queries";
import { useProject } from "../../app/project";
import { Card, Chart, EmptyState, Failure, Loading, Page, Stat, Stats, Table } from "../../design";
import { count, ms, percent, plural, usd } from "../../lib/format";
import { RunState, Stage } from "../shared/badges";
import { RunProgress } from "../run/RunProgress";
import { SetupList } from "./SetupList";

type Overview = Schemas["OverviewOut"];

export function OverviewPage() {
  const { q, name } = useProject();
  const { data, error } = useQuery(q.overview);
  return (
    <Page title="Overview" about={`The last 24 hours of ${name || "this project"}.`}>
      {error && <Failure error={error} />}
      {!data && !error && <Loading what="the overview" />}
      {data && (
        <>
          {!data.setup.live && <SetupList setup={data.setup} />}
          {data.calls_total > 0 && <Numbers overview={data} />}
          {data.calls_total > 0 && (
            <div className="grid-2">
              <Volume hours={data.hours} />
              <Latency hours={data.hours} />
            </div>
          )}
          {data.setup.run && <ActiveRuns />}
          {data.setup.student && <Students students={data.students} />}
        </>
      )}
    </Page>
  );
}

function Numbers({ overview }: { overview: Overview }) {
  const day = overview.last_day;
  const answered = day.calls - day.failed;
  return (
    <Stats>
      <Stat label="Calls" value={count(day.calls)} note={`${count(overview.calls_total)} in all`} />
      <Stat
        label="Spend"
        value={usd(day.spend)}
        note={day.calls ? `${usd((Number(day.spend) / day.calls) * 1000)} per 1,000 calls` : "no calls"}
      />
      <Stat label="Latency p50" value={ms(day.p50_ms)} note={`p95 ${ms(day.p95_ms)}`} />
      <Stat
        label="Answered by students"
        value={answered ? percent(overview.student_calls / answered) : "–"}
        note={`${count(overview.student_calls)} of ${plural(answered, "answer")}`}
      />
      <Stat
        label="Failed"
        value={count(day.failed)}
        note={day.calls ? percent(day.failed / day.calls, 1) : "no calls"}
      />
    </Stats>
  );
}

/** The last 24 hours, those without calls too. */
function useHours(hours: Overview["hours"]) {
  return useMemo(() => {
    const found = new Map(hours.map((hour) => [Date.parse(hour.hour) / 1000, hour]));
    const last = Math.floor(Date.now() / 3_600_000) * 3600;
    const x = Array.from({ length: 24 }, (_, place) => last - (23 - place) * 3600);
    const pick = (of: (hour: Overview["hours"][number]) => number | null, none: number | null) =>
      x.map((moment) => {
        const hour = found.get(moment);
        return hour ? of(hour) : none;
      });
    return { x, pick };
  }, [hours]);
}

const hourLabel = (moment: number) =>
  new Date(moment * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

function Volume({ hours }: { hours: Overview["hours"] }) {
  const { x, pick } = useHours(hours);
  return (
    <Card title="Calls per hour" note="by who answered">
      <Chart
        label="Calls per hour by who answered"
        kind="bars"
        x={x}
        xKind="time"
        xFormat={hourLabel}
        yFormat={(n) => count(Math.round(n))}
        sync="overview"
        series={[
          { name: "upstream", color: "--c-upstream", values: pick((hour) => hour.upstream, 0) },
          { name: "student", color: "--c-student", values: pick((hour) => hour.student, 0) },
          { name: "failed", color: "--c-failed", values: pick((hour) => hour.failed, 0) },
        ]}
      />
    </Card>
  );
}

function Latency({ hours }: { hours: Overview["hours"] }) {
  const { x, pick } = useHours(hours);
  return (
    <Card title="Latency" note="median of each hour">
      <Chart
        label="Median latency of each hour"
        x={x}
        xKind="time"
        xFormat={hourLabel}
        yFormat={ms}
        yRange={[0, null]}
        sync="overview"
        series={[{ name: "p50", color: "--c-3", values: pick((hour) => hour.p50_ms, null) }]}
      />
    </Card>
  );
}

function ActiveRuns() {
  const { q, to } = useProject();
  const { data } = useQuery(q.runs());
  const active = data?.filter(isActive) ?? [];
  if (!active.length) return null;
  return (
    <Card title="Learning now" flush>
      <Table
        label="Runs under way"
        rows={active}
        rowKey={(run) => run.id}
        href={(run) => to(`runs/${run.id}`)}
        columns={[
          { head: "Task", cell: (run) => run.task.name, primary: true },
          { head: "State", cell: (run) => <RunState state={run.state} /> },
          { head: "Phase", cell: (run) => run.phase },
          { head: "Progress", cell: (run) => <RunProgress run={run} />, width: "40%" },
        ]}
      />
    </Card>
  );
}

function Students({ students }: { students: Overview["students"] }) {
  const { to } = useProject();
  return (
    <Card title="Students" note="small models of your own, last 24 hours" flush>
      {students.length === 0 ? (
        <EmptyState title="No student yet" />
      ) : (
        <Table
          label="Students"
          rows={students}
          rowKey={(student) => student.id}
          href={(student) => to(`tasks/${student.task_id}`)}
          columns={[
            { head: "Student", cell: (student) => student.name, primary: true },
            { head: "Task", cell: (student) => student.task_name },
            {
              head: "Route",
              cell: (student) =>
                student.stage ? (
                  <span className="row">
                    <Stage stage={student.stage} /> {percent(student.share)}
                  </span>
                ) : (
                  <Link className="link" to={to("routes")}>
                    not routed
                  </Link>
                ),
            },
            { head: "Calls", cell: (student) => count(student.calls), align: "right" },
            { head: "p50", cell: (student) => ms(student.p50_ms), align: "right" },
          ]}
        />
      )}
    </Card>
  );
}
