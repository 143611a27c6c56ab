// Owns which metrics make which chart. A line without numbers is left out, and a chart without lines.
import { count, metric, percent, seconds } from "../../lib/format";

export type Line = { metric: string; name: string; color: string };
export type Panel = {
  title: string;
  note?: string;
  kind?: "bars";
  lines: Line[];
  /** A dashed line at this height, with its name. */
  level?: { at: number; name: string };
  range?: [number | null, number | null];
  format?: (value: number) => string;
};

const share = (value: number) => percent(value);
const whole = (value: number) => count(Math.round(value));

export const PANELS: Panel[] = [
  {
    title: "Reward",
    note: "the judge’s, comparable within a group only",
    lines: [{ metric: "reward_mean", name: "mean", color: "--c-1" }],
  },
  {
    title: "Margin",
    note: "reward over the teacher’s own answer",
    lines: [{ metric: "margin", name: "student", color: "--c-1" }],
    level: { at: 0, name: "teacher" },
  },
  {
    title: "Validation",
    note: "against the teacher’s answers",
    format: share,
    range: [0, 1],
    lines: [
      { metric: "validation_judged", name: "judged", color: "--c-1" },
      { metric: "validation_agreement", name: "agreement", color: "--c-4" },
    ],
  },
  { title: "Loss", lines: [{ metric: "loss", name: "loss", color: "--c-3" }] },
  {
    title: "Groups",
    note: "only groups with variance teach",
    kind: "bars",
    format: whole,
    lines: [
      { metric: "groups_no_verdict", name: "no verdict", color: "--c-failed" },
      { metric: "groups_no_variance", name: "no variance", color: "--c-muted" },
      { metric: "groups_kept", name: "kept", color: "--c-1" },
    ],
  },
  {
    title: "Refilled",
    note: "groups sampled in place of those without variance",
    kind: "bars",
    format: whole,
    lines: [{ metric: "groups_refilled", name: "groups", color: "--c-3" }],
  },
  {
    title: "Length",
    note: "tokens per answer",
    range: [0, null],
    lines: [{ metric: "completion_tokens", name: "mean", color: "--c-5" }],
  },
  {
    title: "Mismatch",
    note: "KL of sampler and trainer, nats per token",
    range: [0, null],
    lines: [{ metric: "mismatch_kl", name: "KL", color: "--c-4" }],
  },
  {
    title: "Entropy",
    note: "nats per token",
    range: [0, null],
    lines: [{ metric: "entropy", name: "entropy", color: "--c-2" }],
  },
  {
    title: "Shares",
    note: "what the watch looks at",
    format: share,
    range: [0, 1],
    lines: [
      { metric: "common_share", name: "commonest answer", color: "--c-3" },
      { metric: "truncated_share", name: "cut off", color: "--c-failed" },
      { metric: "judge_agreement", name: "judge agrees with itself", color: "--c-2" },
    ],
  },
  {
    title: "Time of a step",
    kind: "bars",
    format: seconds,
    lines: [
      { metric: "seconds_sample", name: "sample", color: "--c-1" },
      { metric: "seconds_judge", name: "judge", color: "--c-2" },
      { metric: "seconds_train", name: "train", color: "--c-3" },
      { metric: "seconds_push", name: "push weights", color: "--c-5" },
    ],
  },
  {
    title: "Gradient norm",
    range: [0, null],
    lines: [{ metric: "grad_norm", name: "norm", color: "--c-2" }],
  },
  { title: "Learning rate", range: [0, null], lines: [{ metric: "lr", name: "rate", color: "--c-muted" }] },
];

export const formatOf = (panel: Panel) => panel.format ?? metric;
