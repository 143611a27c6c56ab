// Owns how candidates are compared: each number with its interval on one scale.
import type { Schemas } from "../../api/client";
import { Badge, IntervalBar, Table, type Column } from "../../design";
import { count, percent } from "../../lib/format";
import css from "./CandidateTable.module.css";
import { CANDIDATE, candidateName, inOrder } from "./phases";

type Evaluation = Schemas["EvaluationOut"];
type Bar = { kind: string; name: string; delta?: number; bar?: number };
type Numbers = { value: number; low: number; high: number };

export function CandidateTable({ evaluation }: { evaluation: Evaluation }) {
  const bars = evaluation.bars as Bar[];
  const judged = bars.find((bar) => bar.kind === "judged");
  const agreement = bars.find((bar) => bar.kind === "agreement");
  const scorers = Object.keys(evaluation.external);
  const names = new Set([
    ...Object.keys(evaluation.candidates),
    ...scorers.flatMap((scorer) => Object.keys(evaluation.external[scorer] ?? {})),
  ]);
  const rows = inOrder(names);

  const columns: Column<string>[] = [
    {
      head: "Candidate",
      cell: (name) => (
        <span className="row">
          <span
            className={css.swatch}
            style={{ background: `var(${CANDIDATE[name]?.color ?? "--text-3"})` }}
            aria-hidden
          />
          <span className={css.name}>{candidateName(name)}</span>
          {name === evaluation.winner && <Badge tone="accent">chosen</Badge>}
        </span>
      ),
    },
    { head: "n", align: "right", cell: (name) => countOf(evaluation, name) },
    {
      head: "Judged against the teacher",
      width: "26%",
      cell: (name) => (
        <Measure
          name={name}
          numbers={judgedNumbers(evaluation, name)}
          bar={judged ? 0.5 - (judged.delta ?? 0) : undefined}
          what="win rate over the teacher"
        />
      ),
    },
    {
      head: "Wins / ties / losses",
      align: "right",
      minor: true,
      cell: (name) => {
        const pairs = evaluation.candidates[name]?.judged;
        return pairs?.n ? `${pairs.wins} / ${pairs.ties} / ${pairs.losses}` : "–";
      },
    },
    {
      head: "Agreement with the teacher",
      width: "26%",
      cell: (name) => (
        <Measure
          name={name}
          numbers={whole(evaluation.candidates[name]?.agreement)}
          bar={agreement?.bar}
          what="agreement"
        />
      ),
    },
    ...scorers.map((scorer): Column<string> => ({
      head: `By your scorer: ${scorer}`,
      width: "26%",
      cell: (name) => (
        <Measure
          name={name}
          numbers={whole(evaluation.external[scorer]?.[name])}
          bar={bars.find((bar) => bar.kind === "external" && bar.name === scorer)?.bar}
          what={scorer}
        />
      ),
    })),
  ];
  return <Table label="Candidates" rows={rows} rowKey={(name) => name} columns={columns} />;
}

function Measure({
  name,
  numbers,
  bar,
  what,
}: {
  name: string;
  numbers: Numbers | null;
  bar?: number | null;
  what: string;
}) {
  if (!numbers) return <span className="dim">–</span>;
  const range = `${percent(numbers.low, 1)} to ${percent(numbers.high, 1)}`;
  return (
    <div className={css.measure}>
      <IntervalBar
        {...numbers}
        bar={bar}
        tone={CANDIDATE[name]?.color}
        label={`${candidateName(name)}: ${what} ${percent(numbers.value, 1)}, interval ${range}`}
      />
      <span className={css.value}>{percent(numbers.value, 1)}</span>
      <span className={css.range}>{range}</span>
    </div>
  );
}

function judgedNumbers(evaluation: Evaluation, name: string): Numbers | null {
  const judged = evaluation.candidates[name]?.judged;
  return judged ? whole({ value: judged.win_rate, low: judged.low, high: judged.high }) : null;
}

function whole(
  numbers: { value?: number | null; low?: number | null; high?: number | null } | null | undefined,
): Numbers | null {
  const { value, low, high } = numbers ?? {};
  return typeof value === "number" && typeof low === "number" && typeof high === "number"
    ? { value, low, high }
    : null;
}

function countOf(evaluation: Evaluation, name: string): string {
  const external = Object.values(evaluation.external).map((scores) => scores[name]?.n);
  const n = evaluation.candidates[name]?.n ?? external.find((value) => typeof value === "number");
  return typeof n === "number" ? count(n) : "–";
}
