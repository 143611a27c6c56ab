import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { api, ok } from "../../api/client";
import { useProject } from "../../app/project";
import { Dialog, DialogForm, Field, Input, Note, Select, useToast } from "../../design";

export function AddRoute({ onClose }: { onClose: () => void }) {
  const { id: project_id, q, to } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const { data: upstreams } = useQuery(q.upstreams);
  const { data: tasks } = useQuery(q.tasks);
  const [alias, setAlias] = useState("");
  const [upstream, setUpstream] = useState("");
  const [model, setModel] = useState("");
  const [task, setTask] = useState("");
  const chosen = upstream || upstreams?.[0]?.id || "";
  const add = useMutation({
    mutationFn: () =>
      ok(
        api.POST("/api/projects/{project_id}/routes", {
          params: { path: { project_id } },
          body: { alias, upstream_id: chosen, upstream_model: model || null, task_id: task || null },
        }),
      ),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: [project_id] });
      say(`Calls for ${alias} are routed.`);
      onClose();
    },
  });
  return (
    <Dialog
      title="Add a route"
      about="It begins in stage observe: the upstream answers everything."
      onClose={onClose}
    >
      <DialogForm
        submit="Add route"
        busy={add.isPending}
        error={add.error}
        disabled={!alias.trim() || !chosen}
        onSubmit={() => add.mutate()}
      >
        {upstreams?.length === 0 && (
          <Note tone="warn">
            A route needs an upstream first.{" "}
            <Link className="link" to={to("access")}>
              Add one
            </Link>
          </Note>
        )}
        <Field
          label="Model name"
          hint="What your app sends as `model`; * takes any name that no other route takes."
        >
          {(id, described) => (
            <Input
              id={id}
              aria-describedby={described}
              autoFocus
              className="mono"
              value={alias}
              onChange={(event) => setAlias(event.target.value)}
            />
          )}
        </Field>
        <Field label="Upstream">
          {(id) => (
            <Select
              id={id}
              value={chosen}
              onChange={(event) => setUpstream(event.target.value)}
              options={(upstreams ?? []).map((one) => ({ value: one.id, label: one.name }))}
            />
          )}
        </Field>
        <Field label="Model name at the upstream" hint="Leave empty where it is the same.">
          {(id, described) => (
            <Input
              id={id}
              aria-describedby={described}
              className="mono"
              value={model}
              onChange={(event) => setModel(event.target.value)}
            />
          )}
        </Field>
        <Field label="Task" hint="A student can only answer on a route of its own task.">
          {(id, described) => (
            <Select
              id={id}
              aria-describedby={described}
              value={task}
              onChange={(event) => setTask(event.target.value)}
              options={[
                { value: "", label: "Every other call of this name" },
                ...(tasks ?? []).map((one) => ({ value: one.id, label: one.name })),
              ]}
            />
          )}
        </Field>
      </DialogForm>
    </Dialog>
  );
}
