// Owns how states are shown: one word and one colour for each, on every page.
import { Badge, type Tone } from "../../design";
import { clock, full, ago } from "../../lib/format";

const RUN: Record<string, Tone> = {
  queued: "neutral",
  running: "accent",
  paused: "warn",
  succeeded: "ok",
  failed: "bad",
  cancelled: "neutral",
};

export function RunState({ state }: { state: string }) {
  return (
    <Badge tone={RUN[state] ?? "neutral"} dot pulse={state === "running"}>
      {state}
    </Badge>
  );
}

const TASK: Record<string, Tone> = { suggested: "info", active: "ok", ignored: "neutral" };

export function TaskState({ state }: { state: string }) {
  return <Badge tone={TASK[state] ?? "neutral"}>{state}</Badge>;
}

const STAGE: Record<string, Tone> = { observe: "neutral", shadow: "info", canary: "warn", live: "ok" };

export function Stage({ stage }: { stage: string }) {
  return <Badge tone={STAGE[stage] ?? "neutral"}>{stage}</Badge>;
}

const DEPLOYMENT: Record<string, Tone> = {
  requested: "neutral",
  starting: "accent",
  ready: "ok",
  failed: "bad",
  stopped: "neutral",
};

export function DeploymentState({ state, error }: { state: string; error?: string | null }) {
  return (
    <Badge tone={DEPLOYMENT[state] ?? "neutral"} dot pulse={state === "starting"} title={error ?? undefined}>
      {state === "ready" ? "engine ready" : `engine ${state}`}
    </Badge>
  );
}

export function ServedBy({ by, name }: { by: string; name?: string | null }) {
  const tone: Tone = by === "student" ? "accent" : by === "upstream" ? "info" : "bad";
  return (
    <Badge tone={tone} title={`answered by ${by}${name ? ` ${name}` : ""}`}>
      {name ?? by}
    </Badge>
  );
}

export function HttpStatus({ status, complete }: { status: number; complete: boolean }) {
  if (status >= 400) return <Badge tone="bad">{status}</Badge>;
  return complete ? <span className="num">{status}</span> : <Badge tone="warn">{status} cut off</Badge>;
}

export function At({ time }: { time: string }) {
  return (
    <time className="num" dateTime={time} title={full(time)}>
      {clock(time)}
    </time>
  );
}

export function Ago({ time }: { time: string | null | undefined }) {
  return time ? (
    <time dateTime={time} title={full(time)}>
      {ago(time)}
    </time>
  ) : (
    <span className="dim">never</span>
  );
}
