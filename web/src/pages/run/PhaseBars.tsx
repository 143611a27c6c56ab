import { Check, CircleX, Minus } from "lucide-react";
import type { Schemas } from "../../api/client";
import { Progress } from "../../design";
import { count, seconds, short } from "../../lib/format";
import css from "./PhaseBars.module.css";
import { PHASE } from "./phases";

type Phase = Schemas["PhaseOut"];

/** Every phase with how far it is, and about how long it will take at its pace. */
export function PhaseBars({ run }: { run: Schemas["RunDetail"] }) {
  return (
    <ol className={css.phases} aria-label="Phases">
      {run.phases.map((phase) => (
        <li
          key={phase.name}
          className={css.phase}
          data-state={phase.state}
          aria-current={phase.state === "running" ? "step" : undefined}
        >
          <div className={css.head}>
            <span className={css.name}>{PHASE[phase.name]?.name ?? phase.name}</span>
            <Mark state={phase.state} />
          </div>
          <Progress
            label={PHASE[phase.name]?.name ?? phase.name}
            value={phase.step}
            max={phase.planned}
            tone={
              phase.state === "done"
                ? "ok"
                : phase.state === "failed"
                  ? "bad"
                  : phase.state === "running"
                    ? "accent"
                    : "neutral"
            }
          />
          <div className={css.facts}>
            <span>
              {count(phase.step)} / {count(phase.planned)}{" "}
              {phase.name === "evaluate" ? "candidates" : "steps"}
            </span>
            <span>{timeOf(phase)}</span>
          </div>
          <p className={css.about}>
            {phase.tokens ? `${short(phase.tokens)} tokens trained` : PHASE[phase.name]?.about}
          </p>
        </li>
      ))}
    </ol>
  );
}

function timeOf(phase: Phase): string {
  if (phase.state === "running" && phase.step > 0 && phase.planned > phase.step)
    return `${seconds((phase.seconds / phase.step) * (phase.planned - phase.step))} left`;
  return phase.seconds ? seconds(phase.seconds) : "";
}

function Mark({ state }: { state: string }) {
  if (state === "done") return <Check size={14} className={css.done} aria-label="done" />;
  if (state === "failed") return <CircleX size={14} className={css.failed} aria-label="failed" />;
  if (state === "skipped") return <Minus size={14} aria-label="skipped" />;
  return <span className={css.state}>{state}</span>;
}
