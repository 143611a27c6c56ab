import { useQuery } from "@tanstack/react-query";
import { ChevronLeft, ChevronRight, Dices } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { isActive } from "../../api/queries";
import { useProject } from "../../app/project";
import { Badge, Button, Card, EmptyState, Failure, Loading, ModelText, Select } from "../../design";
import { metric, plural } from "../../lib/format";
import { Messages, type Message } from "../shared/Messages";
import css from "./Rollouts.module.css";

type Group = Schemas["GroupOut"];
type Rollout = Schemas["RolloutOut"];

export function Rollouts({ run }: { run: Schemas["RunDetail"] }) {
  const { q } = useProject();
  const [step, setStep] = useState<number | undefined>();
  const [chosen, setChosen] = useState(0);
  const { data, error } = useQuery(q.rollouts(run.id, step, isActive(run)));
  if (error) return <Failure error={error} />;
  if (!data) return <Loading what="rollouts" />;
  if (!data.groups.length)
    return (
      <Card flush>
        <EmptyState icon={<Dices size={18} />} title="No rollouts yet">
          GRPO samples several answers to each prompt and has them judged side by side. They appear here.
        </EmptyState>
      </Card>
    );
  const group = data.groups.find((one) => one.group === chosen) ?? data.groups[0];
  return (
    <div className={css.split}>
      <Card title={<StepChoice steps={data.steps} step={data.step ?? 0} onChange={setStep} />} flush>
        <ul className={css.groups}>
          {data.groups.map((one) => (
            <li key={one.group}>
              <button
                type="button"
                className={css.group}
                aria-pressed={one === group}
                onClick={() => setChosen(one.group)}
              >
                <span className="clip">{lastUserText(one.prompt as Message[])}</span>
                <Spread group={one} />
              </button>
            </li>
          ))}
        </ul>
      </Card>
      {group && <GroupView group={group} />}
    </div>
  );
}

function StepChoice({
  steps,
  step,
  onChange,
}: {
  steps: number[];
  step: number;
  onChange: (step: number) => void;
}) {
  const place = steps.indexOf(step);
  const go = (by: number) => {
    const next = steps[place + by];
    if (next !== undefined) onChange(next);
  };
  return (
    <span className="row">
      <Button
        kind="ghost"
        size="sm"
        aria-label="Earlier step"
        disabled={place <= 0}
        icon={<ChevronLeft size={15} />}
        onClick={() => go(-1)}
      />
      <Select
        aria-label="Step"
        className={css.step}
        value={step}
        onChange={(event) => onChange(Number(event.target.value))}
        options={steps.map((one) => ({ value: String(one), label: `Step ${one}` }))}
      />
      <Button
        kind="ghost"
        size="sm"
        aria-label="Later step"
        disabled={place === steps.length - 1}
        icon={<ChevronRight size={15} />}
        onClick={() => go(1)}
      />
    </span>
  );
}

/** A group's rewards on a line from 0 to 1, the anchor as a hollow mark. */
function Spread({ group }: { group: Group }) {
  return (
    <span className={css.spread}>
      <span className={css.line} aria-hidden>
        {group.rollouts.map(
          (rollout) =>
            rollout.reward !== null && (
              <span
                key={rollout.index}
                className={rollout.anchor ? css.anchorMark : css.mark}
                style={{ left: `${Math.min(1, Math.max(0, rollout.reward)) * 100}%` }}
              />
            ),
        )}
      </span>
      <span className={css.kept} data-kept={group.kept}>
        {group.kept ? "kept" : "dropped"}
      </span>
    </span>
  );
}

function GroupView({ group }: { group: Group }) {
  const ranked = [...group.rollouts].sort((a, b) => (b.reward ?? -1) - (a.reward ?? -1));
  return (
    <div className="stack">
      <Card
        title="Prompt"
        note={`group ${group.group}, ${plural(group.rollouts.filter((r) => !r.anchor).length, "completion")}`}
      >
        <Messages messages={group.prompt as Message[]} />
      </Card>
      <Card
        title="Completions"
        note={group.kept ? "best first" : "dropped: no variance, or no usable verdict"}
        flush
      >
        <ol>
          {ranked.map((rollout) => (
            <Completion key={rollout.index} rollout={rollout} />
          ))}
        </ol>
      </Card>
    </div>
  );
}

function Completion({ rollout }: { rollout: Rollout }) {
  const criteria = Object.entries(rollout.criteria);
  return (
    <li className={css.completion} data-anchor={rollout.anchor || undefined}>
      <div className={css.scores}>
        <span className={css.reward}>{metric(rollout.reward)}</span>
        {rollout.advantage !== null && !rollout.anchor && (
          <span
            className={css.advantage}
            data-sign={rollout.advantage > 0 ? "up" : rollout.advantage < 0 ? "down" : "none"}
          >
            {rollout.advantage > 0 ? "+" : ""}
            {metric(rollout.advantage)}
          </span>
        )}
        {rollout.anchor && <Badge tone="info">teacher</Badge>}
      </div>
      <div className={css.text}>
        <ModelText text={rollout.completion} compact />
        {rollout.reason && <p className={css.reason}>{rollout.reason}</p>}
        <div className="row wrap">
          {criteria.map(([name, value]) => (
            <Badge key={name} tone={value === true ? "bad" : "neutral"}>
              {name}{" "}
              {typeof value === "number"
                ? metric(value)
                : typeof value === "boolean"
                  ? value
                    ? "yes"
                    : "no"
                  : String(value)}
            </Badge>
          ))}
          {rollout.tokens > 0 && <span className={css.meta}>{plural(rollout.tokens, "token")}</span>}
          {rollout.finish_reason === "length" && <Badge tone="warn">cut off</Badge>}
        </div>
      </div>
    </li>
  );
}

function lastUserText(messages: Message[]): string {
  const last = messages.findLast((message) => message.role === "user")?.content;
  return typeof last === "string" ? last : "(no text)";
}
