// Owns deleting one call, after saying what goes with it and what stays.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ok } from "../../api/client";
import { useProject } from "../../app/project";
import { Dialog, DialogForm, useToast } from "../../design";

export function DeleteCall({ id, onDone, onClose }: { id: string; onDone: () => void; onClose: () => void }) {
  const { id: project_id } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const remove = useMutation({
    mutationFn: () =>
      ok(
        api.DELETE("/api/projects/{project_id}/calls/{call_id}", {
          params: { path: { project_id, call_id: id } },
        }),
      ),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: [project_id] });
      say("The call is deleted.");
      onDone();
    },
  });
  return (
    <Dialog title="Delete this call?" onClose={onClose}>
      <DialogForm
        danger
        submit="Delete"
        busy={remove.isPending}
        error={remove.error}
        onSubmit={() => remove.mutate()}
      >
        <p>
          What it asked and was answered goes for good. Its charge stays in the ledger, and frozen dataset
          versions keep the copies they have.
        </p>
      </DialogForm>
    </Dialog>
  );
}
