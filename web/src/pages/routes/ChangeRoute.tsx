// Owns the switch: who answers this route from now on.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok, type Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { Dialog, DialogForm, Field, Input, Note, Segmented, Select, useToast } from "../../design";
import { percent } from "../../lib/format";
import { DeploymentState } from "../shared/badges";

type StageName = "observe" | "shadow" | "canary" | "live";

const MEANS: Record<StageName, string> = {
  observe: "The upstream answers everything.",
  shadow: "The upstream answers; the student is asked too, after the reply, for comparison.",
  canary: "The student answers a share, the upstream the rest.",
  live: "The student answers.",
};

export function ChangeRoute({ route, onClose }: { route: Schemas["RouteOut"]; onClose: () => void }) {
  const { id: project_id, q } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const { data: all } = useQuery(q.students);
  const students = (all ?? []).filter((student) => student.task.id === route.task?.id);
  const [stage, setStage] = useState<StageName>(
    (route.revision?.stage as StageName | undefined) ?? "observe",
  );
  const [studentId, setStudentId] = useState(route.revision?.student?.id ?? "");
  const [share, setShare] = useState(route.revision?.share || 0.1);
  const [reason, setReason] = useState("");
  const student = students.find((one) => one.id === studentId) ?? students[0];
  const withStudent = stage !== "observe";
  const answered = stage === "live" ? 1 : stage === "canary" ? share : 0;

  const change = useMutation({
    mutationFn: () =>
      ok(
        api.POST("/api/projects/{project_id}/routes/{route_id}/revisions", {
          params: { path: { project_id, route_id: route.id } },
          body: {
            stage,
            share: answered,
            student_id: withStudent ? (student?.id ?? null) : null,
            evaluation_id: withStudent ? (student?.evaluation_id ?? null) : null,
            reason: reason.trim() || `${stage} by hand`,
          },
        }),
      ),
    onSuccess: ({ number }) => {
      void client.invalidateQueries({ queryKey: [project_id] });
      say(`Revision ${number} is in force.`);
      onClose();
    },
  });

  return (
    <Dialog
      title="Change who answers"
      about={
        <>
          Calls for <span className="mono">{route.alias}</span>
          {route.task ? ` of ${route.task.name}` : " that no other route takes"}
        </>
      }
      onClose={onClose}
    >
      <DialogForm
        submit="Put in force"
        busy={change.isPending}
        error={change.error}
        disabled={withStudent && !student}
        onSubmit={() => change.mutate()}
      >
        <Field label="Stage" hint={MEANS[stage]}>
          {() => (
            <Segmented
              label="Stage"
              value={stage}
              onChange={setStage}
              options={(["observe", "shadow", "canary", "live"] as const).map((value) => ({
                value,
                label: value,
              }))}
            />
          )}
        </Field>
        {withStudent && !student && (
          <Note tone="warn">
            {route.task
              ? "No student of this task has been released. Release one on its run’s evaluation page."
              : "This route takes every other call. A student needs a route of its own task: add one."}
          </Note>
        )}
        {withStudent && student && (
          <Field
            label="Student"
            hint={
              student.deployment ? (
                <DeploymentState state={student.deployment.state} error={student.deployment.error} />
              ) : (
                "no engine"
              )
            }
          >
            {(id, described) => (
              <Select
                id={id}
                aria-describedby={described}
                value={student.id}
                onChange={(event) => setStudentId(event.target.value)}
                options={students.map((one) => ({ value: one.id, label: one.name }))}
              />
            )}
          </Field>
        )}
        {stage === "canary" && (
          <Field label={`Share: ${percent(share)} of the calls`}>
            {(id) => (
              <Input
                id={id}
                type="range"
                min={0.01}
                max={1}
                step={0.01}
                value={share}
                onChange={(event) => setShare(Number(event.target.value))}
              />
            )}
          </Field>
        )}
        <Field label="Reason" hint="Kept with the revision.">
          {(id, described) => (
            <Input
              id={id}
              aria-describedby={described}
              maxLength={500}
              placeholder={`${stage} by hand`}
              value={reason}
              onChange={(event) => setReason(event.target.value)}
            />
          )}
        </Field>
        <Note tone={answered > 0 ? "ok" : "info"}>
          From now on{" "}
          {answered > 0 && student
            ? `${percent(answered)} of the calls go to ${student.name}`
            : `${route.upstream.name} answers every call`}
          . One click rolls it back.
        </Note>
      </DialogForm>
    </Dialog>
  );
}
