import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { useProject } from "../../app/project";
import { Card, Table } from "../../design";
import { Ago } from "../shared/badges";
import { EngineCell } from "./EngineCell";

/** The students that a task has; nothing while it has none. */
export function TaskStudents({ taskId }: { taskId: string }) {
  const { q, to } = useProject();
  const { data } = useQuery(q.students);
  const students = data?.filter((student) => student.task.id === taskId) ?? [];
  if (!students.length) return null;
  return (
    <Card
      title="Students"
      flush
      actions={
        <Link className="link" to={to("routes")}>
          Routes
        </Link>
      }
    >
      <Table
        label="Students of this task"
        rows={students}
        rowKey={(student) => student.id}
        href={(student) => to(`runs/${student.run_id}?tab=evaluation`)}
        columns={[
          { head: "Student", primary: true, cell: (student) => student.name },
          { head: "From", cell: (student) => String(student.manifest.base_model ?? "–") },
          { head: "Candidate", cell: (student) => String(student.manifest.candidate ?? "–") },
          { head: "Engine", cell: (student) => <EngineCell student={student} /> },
          { head: "Released", align: "right", cell: (student) => <Ago time={student.created_at} /> },
        ]}
      />
    </Card>
  );
}
