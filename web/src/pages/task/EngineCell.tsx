// Owns a student's engine in the table of students: its state, and the switch that loads or unloads it.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ok, type Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { Button, useToast } from "../../design";
import { DeploymentState } from "../shared/badges";
import css from "./EngineCell.module.css";

const ENDED = ["stopped", "failed"];

export function EngineCell({ student }: { student: Schemas["StudentOut"] }) {
  const { id: project_id } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const engine = student.deployment;
  const loaded = Boolean(engine?.wanted && !ENDED.includes(engine.state));
  const change = useMutation({
    mutationFn: () => {
      const params = { path: { project_id, student_id: student.id } };
      return ok(
        loaded
          ? api.POST("/api/projects/{project_id}/students/{student_id}/unload", { params })
          : api.POST("/api/projects/{project_id}/students/{student_id}/load", { params }),
      );
    },
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: [project_id] });
      say(loaded ? `${student.name} is being unloaded.` : `${student.name} is being loaded.`);
    },
    onError: (error) => say(error.message, true),
  });
  return (
    <span className={css.cell}>
      {engine ? (
        <DeploymentState state={engine.state} error={engine.error} />
      ) : (
        <span className="dim">none</span>
      )}
      <Button size="sm" kind="ghost" busy={change.isPending} onClick={() => change.mutate()}>
        {loaded ? "Unload" : "Load"}
      </Button>
    </span>
  );
}
