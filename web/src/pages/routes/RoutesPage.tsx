import { useQuery } from "@tanstack/react-query";
import { History, LifeBuoy, Plus, Route as RouteIcon, Shuffle, Undo2 } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { health } from "../../api/queries";
import { Badge, Button, Card, EmptyState, Failure, Loading, Page, Table } from "../../design";
import { ServedBy, Stage } from "../shared/badges";
import { AddRoute } from "./AddRoute";
import { ChangeRoute } from "./ChangeRoute";
import { Fallbacks } from "./Fallbacks";
import { RollBack } from "./RollBack";
import { Revisions } from "./Revisions";
import { ShareBar } from "./ShareBar";

type Route = Schemas["RouteOut"];
type Doing = { what: "add" } | { what: "change" | "fallbacks" | "back" | "history"; route: Route } | null;

export function RoutesPage() {
  const { q } = useProject();
  const { data, error } = useQuery(q.routes);
  const [doing, setDoing] = useState<Doing>(null);
  const done = () => setDoing(null);
  const add = (
    <Button kind="primary" icon={<Plus size={14} />} onClick={() => setDoing({ what: "add" })}>
      Add route
    </Button>
  );
  return (
    <Page
      title="Routes"
      about="Who answers which calls. The app keeps the model name that it always sent."
      actions={add}
    >
      {error && <Failure error={error} />}
      <Card flush>
        {!data && !error && <Loading what="routes" />}
        {data?.length === 0 && (
          <EmptyState icon={<RouteIcon size={18} />} title="No route yet" action={add}>
            A route takes the calls of one model name to an upstream. Later, one task of them may go to a
            student.
          </EmptyState>
        )}
        {data && data.length > 0 && (
          <Table
            label="Routes"
            rows={data}
            rowKey={(route) => route.id}
            onOpen={(route) => setDoing({ what: "history", route })}
            columns={[
              {
                head: "Model name",
                primary: true,
                cell: (route) => <span className="mono">{route.alias}</span>,
              },
              {
                head: "Task",
                cell: (route) => route.task?.name ?? <span className="dim">every other call</span>,
              },
              {
                head: "Stage",
                cell: (route) => (route.revision ? <Stage stage={route.revision.stage} /> : "–"),
              },
              { head: "Answered by", width: "30%", cell: (route) => <Answered route={route} /> },
              { head: "Revision", align: "right", cell: (route) => route.revision?.number ?? "–" },
              {
                head: <span className="visually-hidden">Actions</span>,
                align: "right",
                cell: (route) => (
                  <span className="row" style={{ justifyContent: "flex-end" }}>
                    <Button
                      size="sm"
                      icon={<Shuffle size={13} />}
                      onClick={() => setDoing({ what: "change", route })}
                    >
                      Change
                    </Button>
                    <Button
                      size="sm"
                      icon={<LifeBuoy size={13} />}
                      onClick={() => setDoing({ what: "fallbacks", route })}
                    >
                      Fallbacks
                    </Button>
                    <Button
                      size="sm"
                      icon={<Undo2 size={13} />}
                      disabled={(route.revision?.number ?? 1) < 2}
                      onClick={() => setDoing({ what: "back", route })}
                    >
                      Roll back
                    </Button>
                    <Button
                      size="sm"
                      kind="ghost"
                      aria-label="History"
                      title="History"
                      icon={<History size={14} />}
                      onClick={() => setDoing({ what: "history", route })}
                    />
                  </span>
                ),
              },
            ]}
          />
        )}
      </Card>
      {doing?.what === "add" && <AddRoute onClose={done} />}
      {doing?.what === "change" && <ChangeRoute route={doing.route} onClose={done} />}
      {doing?.what === "fallbacks" && <Fallbacks route={doing.route} onClose={done} />}
      {doing?.what === "back" && <RollBack route={doing.route} onClose={done} />}
      {doing?.what === "history" && <Revisions route={doing.route} onClose={done} />}
    </Page>
  );
}

function Rests() {
  return (
    <Badge tone="warn" title="It failed again and again. Fallbacks answer, and a call tries it now and then.">
      rests
    </Badge>
  );
}

function Answered({ route }: { route: Route }) {
  const { data: state } = useQuery(health);
  const resting = new Set(state?.resting);
  const student = route.revision?.student;
  const share = route.revision?.share ?? 0;
  return (
    <div style={{ display: "grid", gap: 5 }}>
      <span className="row wrap">
        {student && share > 0 && <ServedBy by="student" name={student.name} />}
        {share < 1 && <ServedBy by="upstream" name={route.upstream.name} />}
        {resting.has(route.upstream.id) && <Rests />}
        {route.upstream_model && route.upstream_model !== route.alias && (
          <span className="dim" style={{ fontSize: 12 }}>
            as <span className="mono">{route.upstream_model}</span>
          </span>
        )}
      </span>
      {student && <ShareBar share={share} />}
      {route.fallbacks.length > 0 && (
        <span className="row wrap dim" style={{ fontSize: 12 }}>
          else
          {route.fallbacks.map((one, i) => (
            <span key={i} className="row">
              {one.upstream.name}
              {one.upstream_model && <span className="mono">{one.upstream_model}</span>}
              {resting.has(one.upstream.id) && <Rests />}
            </span>
          ))}
        </span>
      )}
    </div>
  );
}
