import { useQuery } from "@tanstack/react-query";
import { TextSelect } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { isActive } from "../../api/queries";
import { useProject } from "../../app/project";
import { Badge, Card, EmptyState, Failure, Loading, Segmented, Select } from "../../design";
import { metric, plural } from "../../lib/format";
import { PHASE } from "./phases";
import css from "./Tokens.module.css";

type Sequence = Schemas["SequenceOut"];
type Token = Schemas["TokenOut"];

/** What a step learned from, token by token. */
export function Tokens({ run }: { run: Schemas["RunDetail"] }) {
  const { q } = useProject();
  const [phase, setPhase] = useState<string | undefined>();
  const [step, setStep] = useState<number | undefined>();
  const { data, error } = useQuery(q.tokens(run.id, phase, step, isActive(run)));
  if (error) return <Failure error={error} />;
  if (!data) return <Loading what="tokens" />;
  if (!data.phase || !data.sequences.length)
    return (
      <Card flush>
        <EmptyState icon={<TextSelect size={18} />} title="No step has shown its tokens yet">
          A few sequences of the first step and of the latest are kept, as the model read them.
        </EmptyState>
      </Card>
    );
  const steps = data.phases.find((one) => one.phase === data.phase)?.steps ?? [];
  return (
    <div className="stack">
      <div className="row wrap">
        <Segmented
          label="Phase"
          value={data.phase}
          onChange={(chosen) => {
            setPhase(chosen);
            setStep(undefined);
          }}
          options={data.phases.map((one) => ({
            value: one.phase,
            label: PHASE[one.phase]?.name ?? one.phase,
          }))}
        />
        <Select
          aria-label="Step"
          className={css.step}
          value={data.step ?? 0}
          onChange={(event) => setStep(Number(event.target.value))}
          options={steps.map((one) => ({ value: String(one), label: `Step ${one}` }))}
        />
        <p className={css.legend}>
          <span className={css.trained}>trained</span> context <span className={css.special}>special</span>
        </p>
      </div>
      {data.sequences.map((sequence) => (
        <SequenceCard key={sequence.index} sequence={sequence} />
      ))}
    </div>
  );
}

function SequenceCard({ sequence }: { sequence: Sequence }) {
  const trained = sequence.tokens.filter((token) => token.trained).length;
  return (
    <Card
      title={sequence.group === null ? `Example ${sequence.index + 1}` : `Group ${sequence.group}`}
      note={
        <span className="row wrap">
          {sequence.reward !== null && <Badge tone="neutral">reward {metric(sequence.reward)}</Badge>}
          {sequence.advantage !== null && (
            <Badge tone={sequence.advantage > 0 ? "ok" : sequence.advantage < 0 ? "bad" : "neutral"}>
              advantage {sequence.advantage > 0 ? "+" : ""}
              {metric(sequence.advantage)}
            </Badge>
          )}
          {plural(sequence.tokens.length + sequence.left_out, "token")}, {trained} trained
        </span>
      }
    >
      {sequence.left_out > 0 && (
        <p className={css.legend}>{plural(sequence.left_out, "token")} before these are not shown.</p>
      )}
      <div className={css.text}>
        {runsOf(sequence.tokens).map((run, index) =>
          run.trained ? (
            <ins key={index} className={css.answer} aria-label="trained">
              {run.tokens.map(piece)}
            </ins>
          ) : (
            <span key={index}>{run.tokens.map(piece)}</span>
          ),
        )}
      </div>
    </Card>
  );
}

function piece(token: Token, place: number) {
  const about = `id ${token.id}` + (token.logprob === null ? "" : `, log-prob ${metric(token.logprob)}`);
  return (
    <span
      key={place}
      title={about}
      className={`${css.token} ${token.trained ? css.trained : ""} ${token.special ? css.special : ""}`}
    >
      {token.text}
    </span>
  );
}

/** Neighbours that are trained, or are not, together. */
function runsOf(tokens: Token[]): { trained: boolean; tokens: Token[] }[] {
  const runs: { trained: boolean; tokens: Token[] }[] = [];
  for (const token of tokens) {
    const last = runs.at(-1);
    if (last?.trained === token.trained) last.tokens.push(token);
    else runs.push({ trained: token.trained, tokens: [token] });
  }
  return runs;
}
