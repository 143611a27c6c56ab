// Owns what the phases of a run and the candidates of its evaluation are called for people.

export const PHASE: Record<string, { name: string; about: string }> = {
  freeze: { name: "Freeze", about: "calls become an immutable dataset" },
  sft: { name: "Warm start", about: "a little supervised learning" },
  grpo: { name: "GRPO", about: "learning from the judge’s comparisons" },
  sft_all: { name: "SFT on all", about: "the honest rival" },
  evaluate: { name: "Evaluate", about: "every candidate on the test split" },
};

export const CANDIDATE: Record<string, { name: string; color: string }> = {
  teacher: { name: "Teacher", color: "--c-2" },
  base: { name: "Base model", color: "--text-3" },
  sft: { name: "Warm start", color: "--c-3" },
  sft_all: { name: "SFT on all", color: "--c-5" },
  grpo: { name: "GRPO", color: "--c-1" },
};

const ORDER = Object.keys(CANDIDATE);

/** From the teacher to what should beat it. */
export function inOrder(names: Iterable<string>): string[] {
  return [...names].sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));
}

export function candidateName(id: string): string {
  return CANDIDATE[id]?.name ?? id;
}
