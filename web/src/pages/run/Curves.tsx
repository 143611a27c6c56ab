import { useQuery } from "@tanstack/react-query";
import { ChartLine } from "lucide-react";
import { useMemo, useState } from "react";
import type { Schemas } from "../../api/client";
import { isActive } from "../../api/queries";
import { useProject } from "../../app/project";
import { Card, Chart, EmptyState, Segmented, type Series } from "../../design";
import css from "./Curves.module.css";
import { Drift } from "./Drift";
import { formatOf, PANELS, type Panel } from "./panels";
import { PHASE } from "./phases";

type Step = Schemas["StepOut"];
type Run = Schemas["RunDetail"];

const LEARNING = ["grpo", "sft", "sft_all"] as const;

/** The curves of one learning phase; the one under way unless another is chosen. */
export function Curves({ run }: { run: Run }) {
  const { q } = useProject();
  const [chosen, setChosen] = useState<string | null>(null);
  const begun = LEARNING.filter((name) => (run.phases.find((phase) => phase.name === name)?.step ?? 0) > 0);
  const phase = chosen ?? begun.find((name) => name === run.phase) ?? begun[0] ?? "sft";
  const { data: steps = [] } = useQuery(q.steps(run.id, phase, isActive(run)));
  if (!begun.length)
    return (
      <Card flush>
        <EmptyState icon={<ChartLine size={18} />} title="No step has finished yet">
          Curves appear here with the first steps of the warm start.
        </EmptyState>
      </Card>
    );
  return (
    <div className="stack">
      <Segmented
        label="Phase"
        value={phase}
        onChange={setChosen}
        options={begun.map((name) => ({ value: name as string, label: PHASE[name]?.name ?? name }))}
      />
      <Charts steps={steps} />
      <Drift run={run} />
    </div>
  );
}

function Charts({ steps }: { steps: Step[] }) {
  const x = useMemo(() => steps.map((step) => step.step), [steps]);
  const shown = useMemo(
    () =>
      PANELS.map((panel) => ({ panel, series: seriesOf(panel, steps) })).filter(
        ({ series }) => series.length > 0,
      ),
    [steps],
  );
  return (
    <div className={css.charts}>
      {shown.map(({ panel, series }) => (
        <Card key={panel.title} title={panel.title} note={panel.note}>
          <Chart
            label={panel.title}
            height={150}
            kind={panel.kind}
            x={x}
            xKind="step"
            xFormat={(step) => `step ${step}`}
            yFormat={formatOf(panel)}
            yRange={panel.range}
            sync="run"
            series={series}
          />
        </Card>
      ))}
    </div>
  );
}

/** The panel's lines for which there are numbers. */
function seriesOf(panel: Panel, steps: Step[]): Series[] {
  const lines = panel.lines.flatMap((line): Series[] => {
    const values = steps.map((step) => {
      const value: unknown = step.metrics[line.metric];
      return typeof value === "number" ? value : null;
    });
    return values.some((value) => value !== null) ? [{ name: line.name, color: line.color, values }] : [];
  });
  const { level } = panel;
  if (!level || !lines.length) return lines;
  return [
    ...lines,
    { name: level.name, color: "--c-upstream", dashed: true, values: steps.map(() => level.at) },
  ];
}
