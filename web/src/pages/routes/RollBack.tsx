import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ok, type Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { Dialog, DialogForm, useToast } from "../../design";

export function RollBack({ route, onClose }: { route: Schemas["RouteOut"]; onClose: () => void }) {
  const { id: project_id } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const back = useMutation({
    mutationFn: () =>
      ok(
        api.POST("/api/projects/{project_id}/routes/{route_id}/rollback", {
          params: { path: { project_id, route_id: route.id } },
        }),
      ),
    onSuccess: ({ number }) => {
      void client.invalidateQueries({ queryKey: [project_id] });
      say(`Rolled back: revision ${number} is in force.`);
      onClose();
    },
  });
  return (
    <Dialog title="Roll back?" onClose={onClose}>
      <DialogForm
        danger
        submit="Roll back"
        busy={back.isPending}
        error={back.error}
        onSubmit={() => back.mutate()}
      >
        <p>
          Calls for <span className="mono">{route.alias}</span> are answered as before revision{" "}
          {route.revision?.number}. Calls under way end where they began.
        </p>
      </DialogForm>
    </Dialog>
  );
}
