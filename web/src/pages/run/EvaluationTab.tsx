import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleCheck, CircleHelp, CircleX, Rocket } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { api, ApiError, ok, type Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import {
  Badge,
  Button,
  Card,
  Dialog,
  DialogForm,
  EmptyState,
  Failure,
  Loading,
  useToast,
} from "../../design";
import { CandidateTable } from "./CandidateTable";
import css from "./EvaluationTab.module.css";
import { candidateName } from "./phases";

type Evaluation = Schemas["EvaluationOut"];

export function EvaluationTab({ run }: { run: Schemas["RunDetail"] }) {
  const { q, to } = useProject();
  const { data: evaluation, error } = useQuery(q.runEvaluation(run.id));
  if (error instanceof ApiError && error.status === 404)
    return (
      <Card flush>
        <EmptyState title="No evidence yet">
          When training has ended, every candidate answers the test split, which nothing has looked at before.
        </EmptyState>
      </Card>
    );
  if (error) return <Failure error={error} />;
  if (!evaluation) return <Loading what="the evaluation" />;
  return (
    <div className="stack">
      <Verdict evaluation={evaluation} />
      <Card
        title="Candidates"
        note="on the test split, with 95 % intervals; the dashed line is the bar"
        flush
        actions={
          <Link className="link" to={to(`runs/${run.id}/outputs`)}>
            Browse outputs
          </Link>
        }
      >
        <CandidateTable evaluation={evaluation} />
      </Card>
    </div>
  );
}

const WORD = { passed: "clears every bar", failed: "does not clear its bars", undecided: "is undecided" };
const ICON = {
  passed: <CircleCheck size={16} className={css.passed} aria-label="passed" />,
  failed: <CircleX size={16} className={css.failed} aria-label="failed" />,
  undecided: <CircleHelp size={16} className={css.undecided} aria-label="undecided" />,
};

function Verdict({ evaluation }: { evaluation: Evaluation }) {
  const { q, to } = useProject();
  const [releasing, setReleasing] = useState(false);
  const { data: students } = useQuery(q.students);
  const student = students?.find((released) => released.evaluation_id === evaluation.id);
  const gate = evaluation.gate;
  if (!gate)
    return (
      <Card title="Evaluating">
        <p className="muted">
          {Object.keys(evaluation.candidates).length} candidates have answered so far. The bars were declared
          before.
        </p>
      </Card>
    );
  return (
    <Card
      title={`${candidateName(gate.candidate)}, chosen on validation, ${WORD[gate.outcome]}`}
      actions={
        <>
          <Badge tone={gate.outcome === "passed" ? "ok" : gate.outcome === "failed" ? "bad" : "warn"} dot>
            {gate.outcome}
          </Badge>
          {student ? (
            <Link className="link" to={to("routes")}>
              Released as {student.name}
            </Link>
          ) : (
            <Button
              kind="primary"
              icon={<Rocket size={14} />}
              disabled={!gate.passed}
              onClick={() => setReleasing(true)}
            >
              Release
            </Button>
          )}
        </>
      }
    >
      <ul className={css.bars}>
        {gate.bars.map((bar) => (
          <li key={bar.name} className={css.bar}>
            {ICON[bar.outcome]}
            <span>{bar.reason}</span>
          </li>
        ))}
      </ul>
      {releasing && <Release evaluation={evaluation} onClose={() => setReleasing(false)} />}
    </Card>
  );
}

function Release({ evaluation, onClose }: { evaluation: Evaluation; onClose: () => void }) {
  const { id: project_id } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const release = useMutation({
    mutationFn: () =>
      ok(
        api.POST("/api/projects/{project_id}/evaluations/{evaluation_id}/release", {
          params: { path: { project_id, evaluation_id: evaluation.id } },
        }),
      ),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: [project_id] });
      say("Released. Its engine is starting; route calls to it when it is ready.");
      onClose();
    },
  });
  return (
    <Dialog title={`Release ${candidateName(evaluation.winner ?? "")} as a student?`} onClose={onClose}>
      <DialogForm
        submit="Release"
        busy={release.isPending}
        error={release.error}
        onSubmit={() => release.mutate()}
      >
        <p>
          Its weights are loaded in the serving engine. It answers nobody until you change a route: release
          costs no call.
        </p>
      </DialogForm>
    </Dialog>
  );
}
