// Owns how long a project's calls are kept.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "../../api/client";
import { projects } from "../../api/queries";
import { useProject } from "../../app/project";
import { Button, Card, Failure, Field, Input, useToast } from "../../design";

export function Kept() {
  const { id: project_id } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const { data } = useQuery(projects);
  const stored = data?.find((project) => project.id === project_id)?.retention_days;
  const [days, setDays] = useState<string>();
  const shown = days ?? String(stored ?? "");
  const save = useMutation({
    mutationFn: () =>
      ok(
        api.PATCH("/api/projects/{project_id}", {
          params: { path: { project_id } },
          body: { retention_days: shown ? Number(shown) : null },
        }),
      ),
    onSuccess: ({ retention_days }) => {
      void client.invalidateQueries();
      setDays(undefined);
      say(retention_days ? `Calls are kept for ${retention_days} days.` : "Calls are kept for ever.");
    },
  });
  return (
    <Card title="How long calls are kept" note="what is older is deleted once a day; the ledger stays">
      {save.error && <Failure error={save.error} />}
      <form
        className="row wrap"
        style={{ alignItems: "center" }}
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <Field label="Days" hint="Empty: for ever. A key or a route may keep its calls for a shorter time.">
          {(id, described) => (
            <Input
              id={id}
              aria-describedby={described}
              type="number"
              min={1}
              value={shown}
              onChange={(event) => setDays(event.target.value)}
            />
          )}
        </Field>
        <Button busy={save.isPending} disabled={days === undefined}>
          Save
        </Button>
      </form>
    </Card>
  );
}
