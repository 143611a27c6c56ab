import { useQuery } from "@tanstack/react-query";
import { GraduationCap } from "lucide-react";
import { Link } from "react-router";
import { useProject } from "../../app/project";
import { Card, EmptyState, Failure, Loading, Page } from "../../design";
import { RunsTable } from "./RunsTable";

export function RunsPage() {
  const { q, to } = useProject();
  const { data, error } = useQuery(q.runs());
  return (
    <Page
      title="Runs"
      about="Training jobs: a warm start, learning from a judge, and the evidence at the end."
    >
      {error && <Failure error={error} />}
      <Card flush>
        {!data && !error && <Loading what="runs" />}
        {data?.length === 0 && (
          <EmptyState
            icon={<GraduationCap size={18} />}
            title="No run yet"
            action={
              <Link className="link" to={to("tasks")}>
                Choose a task
              </Link>
            }
          >
            Open a task and start its first run there.
          </EmptyState>
        )}
        {data && data.length > 0 && <RunsTable runs={data} withTask />}
      </Card>
    </Page>
  );
}
