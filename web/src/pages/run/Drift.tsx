import type { Schemas } from "../../api/client";
import { Card, Table, type Column } from "../../design";
import { metric, percent } from "../../lib/format";
import { PHASE } from "./phases";

type Row = Schemas["DriftOut"];

const COLUMNS: Column<Row>[] = [
  { head: "Phase", cell: (row) => PHASE[row.phase]?.name ?? row.phase },
  { head: "After step", align: "right", minor: true, cell: (row) => row.step },
  { head: "Weights moved", align: "right", cell: (row) => percent(row.weights, 2) },
  { head: "Tokens moved", align: "right", cell: (row) => percent(row.moved) },
  { head: "KL on general text", align: "right", cell: (row) => nats(row.kl) },
  { head: "KL from the base", align: "right", cell: (row) => nats(row.forgotten_kl) },
  { head: "General answers less likely by", align: "right", cell: (row) => nats(row.forgotten) },
];

const nats = (value: number | null) => (value === null ? "–" : `${metric(value)} nats`);

/** How far each phase has moved the model, side by side. */
export function Drift({ run }: { run: Schemas["RunDetail"] }) {
  if (!run.drift.length) return null;
  return (
    <Card title="Drift" note="how far each phase has moved the model, and what it forgets" flush>
      <Table label="Drift" columns={COLUMNS} rows={run.drift} rowKey={(row) => row.phase} />
    </Card>
  );
}
