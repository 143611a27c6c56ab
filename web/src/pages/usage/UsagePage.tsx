import { useQuery } from "@tanstack/react-query";
import { Wallet } from "lucide-react";
import { useMemo, useState } from "react";
import type { Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import {
  Card,
  Chart,
  EmptyState,
  Failure,
  Loading,
  Page,
  Segmented,
  Stat,
  Stats,
  Table,
  type Column,
} from "../../design";
import { count, day, ms, percent, short, usd } from "../../lib/format";
import { daysUpTo } from "../shared/days";
import { ServedBy } from "../shared/badges";

type Usage = Schemas["UsageOut"];
type Totals = Schemas["UsageTotals"];
type Days = "7" | "30" | "90";

export function UsagePage() {
  const { q } = useProject();
  const [days, setDays] = useState<Days>("30");
  const { data, error } = useQuery({ ...q.usage(Number(days)), placeholderData: (before) => before });
  return (
    <Page
      title="Usage"
      about="What calls cost, at the prices of their time. Days are UTC."
      actions={
        <Segmented
          label="Period"
          value={days}
          onChange={setDays}
          options={[
            { value: "7", label: "7 days" },
            { value: "30", label: "30 days" },
            { value: "90", label: "90 days" },
          ]}
        />
      }
    >
      {error && <Failure error={error} />}
      {!data && !error && <Loading what="usage" />}
      {data && data.totals.calls === 0 && (
        <Card flush>
          <EmptyState icon={<Wallet size={18} />} title="No calls in this period">
            Spend, tokens and latency appear with the first call.
          </EmptyState>
        </Card>
      )}
      {data && data.totals.calls > 0 && <Period usage={data} />}
    </Page>
  );
}

function Period({ usage }: { usage: Usage }) {
  const totals = usage.totals;
  return (
    <>
      <Stats>
        <Stat
          label="Spend on calls"
          value={usd(totals.spend)}
          note={`${usd((Number(totals.spend) / totals.calls) * 1000)} per 1,000 calls`}
        />
        <Stat label="Spend on judging" value={usd(usage.judge_spend)} note="scoring of runs" />
        <Stat
          label="Calls"
          value={count(totals.calls)}
          note={`${percent(totals.failed / totals.calls, 1)} failed`}
        />
        <Stat
          label="Tokens in"
          value={short(totals.prompt_tokens)}
          note={`${short(totals.cached_tokens)} of them cached`}
        />
        <Stat
          label="Tokens out"
          value={short(totals.completion_tokens)}
          note={`${short(totals.completion_tokens / totals.calls)} per call`}
        />
        <Stat label="Latency p50" value={ms(totals.p50_ms)} note={`p95 ${ms(totals.p95_ms)}`} />
      </Stats>
      <div className="grid-2">
        <ByDay usage={usage} title="Spend per day" of={(entry) => Number(entry.spend)} format={usd} />
        <ByDay
          usage={usage}
          title="Calls per day"
          of={(entry) => entry.calls}
          format={(n) => count(Math.round(n))}
        />
      </div>
      <Card title="By who answered" flush>
        <Table
          label="Usage by who answered"
          rows={usage.by_served_by}
          rowKey={(line) => `${line.served_by} ${line.name}`}
          columns={[
            { head: "Answered by", cell: (line) => <ServedBy by={line.served_by} name={line.name} /> },
            ...totalColumns,
          ]}
        />
      </Card>
      <Card title="By model name" flush>
        <Table
          label="Usage by model name"
          rows={usage.by_alias}
          rowKey={(line) => line.alias}
          columns={[
            { head: "Model name", cell: (line) => <span className="mono">{line.alias}</span> },
            ...totalColumns,
          ]}
        />
      </Card>
    </>
  );
}

const totalColumns: Column<Totals>[] = [
  { head: "Calls", align: "right", cell: (line) => count(line.calls) },
  {
    head: "Failed",
    align: "right",
    cell: (line) => (line.failed ? percent(line.failed / line.calls, 1) : "0 %"),
  },
  { head: "Tokens in", align: "right", minor: true, cell: (line) => short(line.prompt_tokens) },
  { head: "Tokens out", align: "right", minor: true, cell: (line) => short(line.completion_tokens) },
  { head: "p50", align: "right", cell: (line) => ms(line.p50_ms) },
  { head: "p95", align: "right", cell: (line) => ms(line.p95_ms) },
  { head: "Per 1,000 calls", align: "right", cell: (line) => usd((Number(line.spend) / line.calls) * 1000) },
  { head: "Spend", align: "right", cell: (line) => usd(line.spend) },
];

const SERVERS = [
  { key: "upstream", color: "--c-upstream" },
  { key: "student", color: "--c-student" },
  { key: "gateway", color: "--c-failed" },
];

type DayEntry = Schemas["UsageByDayServer"];

function ByDay({
  usage,
  title,
  of,
  format,
}: {
  usage: Usage;
  title: string;
  of: (entry: DayEntry) => number;
  format: (n: number) => string;
}) {
  const { x, series } = useMemo(() => {
    const last = Date.parse(usage.since) / 1000 + (usage.days - 1) * 86_400;
    const first = Math.min(...usage.by_day.map((entry) => Date.parse(entry.day) / 1000));
    const x = daysUpTo(last, usage.days, first);
    const found = new Map(
      usage.by_day_served_by.map((entry) => [`${entry.served_by} ${Date.parse(entry.day) / 1000}`, entry]),
    );
    const series = SERVERS.map(({ key, color }) => ({
      name: key,
      color,
      values: x.map((moment) => {
        const entry = found.get(`${key} ${moment}`);
        return entry ? of(entry) : 0;
      }),
    })).filter((line) => line.name !== "gateway" || line.values.some((value) => value > 0));
    return { x, series };
  }, [usage, of]);
  return (
    <Card title={title}>
      <Chart
        label={title}
        kind="bars"
        x={x}
        xKind="time"
        xFormat={(moment) => day(new Date(moment * 1000).toISOString())}
        yFormat={format}
        sync="usage"
        series={series}
      />
    </Card>
  );
}
