import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleStop, Play } from "lucide-react";
import { useState } from "react";
import { useParams, useSearchParams } from "react-router";
import { api, ok, type Schemas } from "../../api/client";
import { isActive } from "../../api/queries";
import { useProject } from "../../app/project";
import { Button, Dialog, DialogForm, Failure, Loading, Note, Page, Tabs, useToast } from "../../design";
import { plural, shortId, usd } from "../../lib/format";
import { Ago, RunState } from "../shared/badges";
import { Configuration } from "./Configuration";
import { Curves } from "./Curves";
import { EvaluationTab } from "./EvaluationTab";
import { Events } from "./Events";
import { PhaseBars } from "./PhaseBars";
import { Rollouts } from "./Rollouts";
import { Tokens } from "./Tokens";

type Run = Schemas["RunDetail"];

export function RunPage() {
  const { runId = "" } = useParams();
  const { q, to } = useProject();
  const { data: run, error } = useQuery(q.run(runId));
  const [search, setSearch] = useSearchParams();
  if (error) return <Failure error={error} />;
  if (!run) return <Loading what="the run" />;
  const finished = run.state === "succeeded";
  return (
    <Page
      title={run.task.name}
      crumbs={[
        { label: "Runs", to: to("runs") },
        { label: run.task.name, to: to(`tasks/${run.task.id}`) },
      ]}
      badge={<RunState state={run.state} />}
      about={
        <>
          Run <span className="mono">{shortId(run.id)}</span> of {run.base_model}, judged by{" "}
          {run.judge?.name ?? "nobody"} for {usd(run.judge_spend)}
          {isActive(run) ? " so far" : ""}, started <Ago time={run.started_at ?? run.created_at} />
          {run.attempts > 0 && `, ${plural(run.attempts, "restart")} without a finished step`}.
        </>
      }
      actions={<Actions run={run} />}
    >
      {run.error && <Note tone={run.state === "failed" ? "bad" : "warn"}>{run.error}</Note>}
      <PhaseBars run={run} />
      <Tabs
        label="Parts of the run"
        chosen={search.get("tab") ?? (finished ? "evaluation" : "curves")}
        onChoose={(tab) => setSearch({ tab }, { replace: true })}
        tabs={[
          { id: "curves", label: "Curves", content: () => <Curves run={run} /> },
          { id: "rollouts", label: "Rollouts", content: () => <Rollouts run={run} /> },
          { id: "tokens", label: "Tokens", content: () => <Tokens run={run} /> },
          { id: "evaluation", label: "Evaluation", content: () => <EvaluationTab run={run} /> },
          { id: "events", label: "Events", content: () => <Events run={run} /> },
          { id: "configuration", label: "Configuration", content: () => <Configuration run={run} /> },
        ]}
      />
    </Page>
  );
}

function Actions({ run }: { run: Run }) {
  const { id: project_id } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const [stopping, setStopping] = useState(false);
  const path = { project_id, run_id: run.id };
  const refresh = () => client.invalidateQueries({ queryKey: [project_id, "runs"] });
  const cancel = useMutation({
    mutationFn: () => ok(api.POST("/api/projects/{project_id}/runs/{run_id}/cancel", { params: { path } })),
    onSuccess: () => {
      setStopping(false);
      say("The run stops within a heartbeat.");
      void refresh();
    },
  });
  const resume = useMutation({
    mutationFn: () => ok(api.POST("/api/projects/{project_id}/runs/{run_id}/resume", { params: { path } })),
    onSuccess: () => {
      say("The run goes on from its last finished step.");
      void refresh();
    },
    onError: (error) => say(error.message, true),
  });
  return (
    <>
      {["paused", "failed", "cancelled"].includes(run.state) && (
        <Button icon={<Play size={14} />} busy={resume.isPending} onClick={() => resume.mutate()}>
          Go on
        </Button>
      )}
      {isActive(run) && (
        <Button kind="danger" icon={<CircleStop size={14} />} onClick={() => setStopping(true)}>
          Stop
        </Button>
      )}
      {stopping && (
        <Dialog title="Stop this run?" onClose={() => setStopping(false)}>
          <DialogForm
            danger
            submit="Stop run"
            busy={cancel.isPending}
            error={cancel.error}
            onSubmit={() => cancel.mutate()}
          >
            <p>Its steps and checkpoints stay. It can go on later from its last finished step.</p>
          </DialogForm>
        </Dialog>
      )}
    </>
  );
}
