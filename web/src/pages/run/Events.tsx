import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import { isActive } from "../../api/queries";
import { useProject } from "../../app/project";
import { Badge, Card, EmptyState, Loading, type Tone } from "../../design";
import { At } from "../shared/badges";
import css from "./Events.module.css";

const TONE: Record<string, Tone> = {
  alarm: "bad",
  failure: "bad",
  failed: "bad",
  restart: "warn",
  sampler_restarted: "warn",
  paused: "warn",
  phase: "accent",
  checkpoint: "info",
  succeeded: "ok",
};

export function Events({ run }: { run: Schemas["RunDetail"] }) {
  const { q } = useProject();
  const { data } = useQuery(q.events(run.id, isActive(run)));
  return (
    <Card flush>
      {!data && <Loading what="events" />}
      {data?.length === 0 && <EmptyState title="Nothing has happened yet" />}
      <ol>
        {data?.map((event) => (
          <li key={event.id} className={css.event}>
            <span className={css.time}>
              <At time={event.created_at} />
            </span>
            <Badge tone={TONE[event.kind] ?? "neutral"}>{event.kind}</Badge>
            <span className={css.message}>{event.message}</span>
          </li>
        ))}
      </ol>
    </Card>
  );
}
