import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useParams, useSearchParams } from "react-router";
import type { Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { Badge, Card, EmptyState, Failure, Loading, Page, SearchBox, Segmented } from "../../design";
import { count, plural } from "../../lib/format";
import { candidateName, inOrder } from "../run/phases";
import type { Message } from "../shared/Messages";
import { Compare } from "./Compare";
import css from "./OutputsPage.module.css";

type Output = Schemas["OutputOut"];
type Show = "all" | "differs" | "matches" | "lost";

const SHOWN = 50;

const KEEP: Record<Show, (output: Output) => boolean> = {
  all: () => true,
  differs: (output) => !output.matches,
  matches: (output) => output.matches,
  lost: (output) => output.score === 0,
};

export function OutputsPage() {
  const { runId = "" } = useParams();
  const { q, to } = useProject();
  const { data: run } = useQuery(q.run(runId));
  const { data: evaluation, error } = useQuery(q.runEvaluation(runId));
  const [search, setSearch] = useSearchParams();
  const names = inOrder(Object.keys(evaluation?.candidates ?? {}));
  const candidate = search.get("candidate") ?? evaluation?.winner ?? names[0];
  return (
    <Page
      title="Outputs"
      crumbs={[
        { label: "Runs", to: to("runs") },
        { label: run?.task.name ?? "Run", to: to(`runs/${runId}?tab=evaluation`) },
      ]}
      about="What each candidate answered on the test split, beside the teacher’s answer."
      actions={
        candidate && (
          <Segmented
            label="Candidate"
            value={candidate}
            onChange={(name) => setSearch({ candidate: name }, { replace: true })}
            options={names.map((name) => ({ value: name, label: candidateName(name) }))}
          />
        )
      }
    >
      {error && <Failure error={error} />}
      {!evaluation && !error && <Loading what="the evaluation" />}
      {evaluation && candidate && <Outputs evaluationId={evaluation.id} candidate={candidate} />}
      {evaluation && !candidate && <EmptyState title="No candidate has answered yet" />}
    </Page>
  );
}

function Outputs({ evaluationId, candidate }: { evaluationId: string; candidate: string }) {
  const { q } = useProject();
  const { data, error } = useQuery(q.outputs(evaluationId, candidate));
  const [show, setShow] = useState<Show>("differs");
  const [text, setText] = useState("");
  const [shown, setShown] = useState(SHOWN);
  const found = useMemo(
    () => (data ?? []).filter((output) => KEEP[show](output) && includes(output, text.toLowerCase())),
    [data, show, text],
  );
  if (error) return <Failure error={error} />;
  if (!data) return <Loading what="outputs" />;
  const number = (which: Show) => count(data.filter(KEEP[which]).length);
  return (
    <>
      <div className="row wrap">
        <Segmented
          label="Which outputs"
          value={show}
          onChange={(value) => {
            setShow(value);
            setShown(SHOWN);
          }}
          options={[
            { value: "differs", label: `Differ ${number("differs")}` },
            { value: "lost", label: `Lost ${number("lost")}` },
            { value: "matches", label: `Match ${number("matches")}` },
            { value: "all", label: `All ${number("all")}` },
          ]}
        />
        <SearchBox label="Search outputs" value={text} onChange={setText} />
      </div>
      <Card flush>
        {found.length === 0 && <EmptyState title="No output fits">Choose another filter.</EmptyState>}
        <ol>
          {found.slice(0, shown).map((output) => (
            <OutputRow key={output.row} output={output} candidate={candidate} />
          ))}
        </ol>
        {found.length > shown && (
          <button type="button" className={css.more} onClick={() => setShown(shown + SHOWN)}>
            Show {plural(Math.min(SHOWN, found.length - shown), "more output")}
          </button>
        )}
      </Card>
    </>
  );
}

function OutputRow({ output, candidate }: { output: Output; candidate: string }) {
  const last = (output.input as Message[]).findLast((message) => message.role === "user")?.content;
  return (
    <li className={css.output}>
      <p className={css.input}>{typeof last === "string" ? last : JSON.stringify(last ?? output.input)}</p>
      <Compare output={output.output} reference={output.reference} name={candidateName(candidate)} />
      <div className="row wrap">
        {output.matches ? <Badge tone="ok">matches</Badge> : <Badge tone="warn">differs</Badge>}
        <Score score={output.score} />
        {output.reason && <span className={css.reason}>{output.reason}</span>}
      </div>
    </li>
  );
}

function Score({ score }: { score: number | null }) {
  if (score === null) return <Badge>not judged</Badge>;
  if (score === 1) return <Badge tone="ok">judged better</Badge>;
  return score === 0 ? <Badge tone="bad">judged worse</Badge> : <Badge>judged alike</Badge>;
}

function includes(output: Output, text: string): boolean {
  return (
    !text ||
    `${output.output} ${output.reference} ${JSON.stringify(output.input)}`.toLowerCase().includes(text)
  );
}
