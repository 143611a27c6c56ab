// Owns the way from nothing to a student that answers: what is done, what comes next.
import { useQuery } from "@tanstack/react-query";
import { ArrowRight, Check } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { Card } from "../../design";
import { Connect } from "../shared/Connect";
import css from "./SetupList.module.css";

type Step = { done: boolean; title: string; text: string; to?: string; go?: string; more?: ReactNode };

export function SetupList({ setup }: { setup: Schemas["Setup"] }) {
  const { q, to } = useProject();
  const { data: routes } = useQuery(q.routes);
  const steps: Step[] = [
    {
      done: setup.upstream,
      title: "Add an upstream",
      text: "The provider that answers today: its address, its key, what its terms allow.",
      to: to("access"),
      go: "Add upstream",
    },
    {
      done: setup.route,
      title: "Route a model name to it",
      text: "The name your app already sends stays; the route says who answers.",
      to: to("routes"),
      go: "Add route",
    },
    {
      done: setup.key,
      title: "Make a key",
      text: "Your app uses it instead of the provider’s.",
      to: to("access"),
      go: "Make key",
    },
    {
      done: setup.call,
      title: "Send your app’s calls here",
      text: "Change the base URL, nothing else.",
      more: <Connect model={routes?.find((route) => route.alias !== "*")?.alias} />,
    },
    {
      done: setup.task,
      title: "A task shows",
      text: "Calls that share a prompt shape become a task by themselves, after some twenty of them.",
      to: to("tasks"),
      go: "Tasks",
    },
    {
      done: setup.run,
      title: "Start a run",
      text: "A short warm start, then learning from a judge’s comparisons.",
      to: to("tasks"),
      go: "Choose a task",
    },
    {
      done: setup.student,
      title: "Release a student",
      text: "When held-out evidence clears the bars that you declared.",
      to: to("runs"),
      go: "Runs",
    },
    {
      done: setup.live,
      title: "Let it answer",
      text: "A share of the calls first, then all of them.",
      to: to("routes"),
      go: "Routes",
    },
  ];
  const done = steps.filter((step) => step.done);
  const next = steps.findIndex((step) => !step.done);
  return (
    <Card
      title="From the first call to a model of your own"
      note={`${done.length} of ${steps.length} done`}
      flush
    >
      {done.length > 0 && (
        <ul className={css.done} aria-label="Done">
          {done.map((step) => (
            <li key={step.title}>
              <Check size={13} strokeWidth={3} aria-hidden /> {step.title}
            </li>
          ))}
        </ul>
      )}
      <ol>
        {steps.map((step, place) =>
          step.done ? null : <Ahead key={step.title} step={step} number={place + 1} next={place === next} />,
        )}
      </ol>
    </Card>
  );
}

function Ahead({ step, number, next }: { step: Step; number: number; next: boolean }) {
  return (
    <li className={css.step} data-state={next ? "next" : "later"}>
      <span className={css.mark} aria-hidden>
        {number}
      </span>
      <div className={css.body}>
        <h3 className={css.title}>{step.title}</h3>
        <p className={css.text}>{step.text}</p>
        {next && step.more}
      </div>
      {next && step.to && (
        <Link className={css.go} to={step.to}>
          {step.go} <ArrowRight size={14} aria-hidden />
        </Link>
      )}
    </li>
  );
}
