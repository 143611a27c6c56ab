import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { Badge, Dialog, Loading, Table } from "../../design";
import { percent } from "../../lib/format";
import { At, Stage } from "../shared/badges";

export function Revisions({ route, onClose }: { route: Schemas["RouteOut"]; onClose: () => void }) {
  const { q } = useProject();
  const { data } = useQuery(q.revisions(route.id));
  return (
    <Dialog
      side
      title={route.alias}
      about={`${route.task?.name ?? "every other call"}: every change of who answers, never rewritten`}
      onClose={onClose}
    >
      {!data && <Loading what="revisions" />}
      {data && (
        <Table
          label="Revisions, newest first"
          rows={data}
          rowKey={(revision) => revision.id}
          columns={[
            {
              head: "Revision",
              cell: (revision) => (
                <span className="row">
                  {revision.number}
                  {revision.id === route.revision?.id && <Badge tone="ok">in force</Badge>}
                </span>
              ),
            },
            { head: "Stage", cell: (revision) => <Stage stage={revision.stage} /> },
            {
              head: "Student",
              cell: (revision) => revision.student?.name ?? <span className="dim">none</span>,
            },
            { head: "Share", align: "right", cell: (revision) => percent(revision.share) },
            { head: "Reason", cell: (revision) => revision.reason },
            { head: "Since", align: "right", cell: (revision) => <At time={revision.created_at} /> },
          ]}
        />
      )}
    </Dialog>
  );
}
