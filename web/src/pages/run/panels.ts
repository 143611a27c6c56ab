// Owns which metrics make which chart. A chart without numbers is left out.

export type Line = { metric: string; name: string; color: string; dashed?: boolean };
export type Panel = {
  title: string;
  note?: string;
  lines: Line[];
  range?: [number | null, number | null];
  share?: boolean;
  format?: (value: number) => string;
};

export const PANELS: Panel[] = [
  {
    title: "Reward",
    note: "comparable within a group only",
    range: [0, 1],
    lines: [
      { metric: "reward", name: "student", color: "--c-1" },
      { metric: "anchor_reward", name: "teacher’s answer", color: "--c-2", dashed: true },
    ],
  },
  {
    title: "Margin over the teacher",
    note: "reward minus the anchor’s",
    lines: [{ metric: "margin", name: "margin", color: "--c-1" }],
  },
  {
    title: "Agreement on validation",
    note: "exact match with the teacher",
    share: true,
    range: [0, 1],
    lines: [{ metric: "validation_agreement", name: "agreement", color: "--c-4" }],
  },
  { title: "Loss", lines: [{ metric: "loss", name: "loss", color: "--c-3" }] },
  {
    title: "Groups",
    note: "only groups with variance teach",
    range: [0, null],
    lines: [
      { metric: "groups", name: "sampled", color: "--text-3", dashed: true },
      { metric: "groups_kept", name: "kept", color: "--c-1" },
      { metric: "groups_dropped", name: "judge failed", color: "--c-failed" },
    ],
  },
  {
    title: "Length",
    note: "tokens per answer",
    range: [0, null],
    lines: [{ metric: "length", name: "mean", color: "--c-5" }],
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
    lines: [{ metric: "entropy", name: "entropy", color: "--c-5" }],
  },
  {
    title: "Gradient norm",
    range: [0, null],
    lines: [{ metric: "grad_norm", name: "norm", color: "--c-2" }],
  },
  { title: "Learning rate", range: [0, null], lines: [{ metric: "lr", name: "rate", color: "--text-3" }] },
];
