import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { api, ok } from "../api/client";
import { projects } from "../api/queries";
import { Dialog, DialogForm, Field, Input } from "../design";

export function CreateProject({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const client = useQueryClient();
  const navigate = useNavigate();
  const create = useMutation({
    mutationFn: () => ok(api.POST("/api/projects", { body: { name } })),
    onSuccess: async ({ id }) => {
      await client.invalidateQueries({ queryKey: projects.queryKey });
      onClose();
      await navigate(`/p/${id}`);
    },
  });
  return (
    <Dialog title="New project" onClose={onClose}>
      <DialogForm
        submit="Make project"
        busy={create.isPending}
        error={create.error}
        disabled={!name.trim()}
        onSubmit={() => create.mutate()}
      >
        <Field label="Name" hint="Usually the app’s name.">
          {(id) => (
            <Input
              id={id}
              autoFocus
              value={name}
              maxLength={100}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
      </DialogForm>
    </Dialog>
  );
}
