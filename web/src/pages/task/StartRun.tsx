// Owns the form that starts a run: a size, a judge, a bar; everything else has a default.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { api, ok, type Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { Columns, Dialog, DialogForm, Field, Input, Note, Segmented, Select } from "../../design";
import { count } from "../../lib/format";

type Task = Schemas["TaskDetail"];
type Config = Schemas["RunConfig"];
type Size = "quick" | "standard" | "thorough";

const SIZES: Record<Size, { label: string; note: string; scale: number }> = {
  quick: { label: "Quick", note: "a first look: half the steps", scale: 0.5 },
  standard: { label: "Standard", note: "suits a narrow task", scale: 1 },
  thorough: { label: "Thorough", note: "three times the steps", scale: 3 },
};

const LOSSES = ["cispo", "dapo", "ppo", "gspo", "grpo", "dr_grpo", "importance_sampling"] as const;

export function StartRun({ task, onClose }: { task: Task; onClose: () => void }) {
  const { id: project_id, to } = useProject();
  const navigate = useNavigate();
  const defaults = task.run_defaults;
  const base = defaults.config;
  const [size, setSize] = useState<Size>("standard");
  const [judge, setJudge] = useState(defaults.judges[0]?.id ?? "");
  const [config, setConfig] = useState<Config>({});
  const [delta, setDelta] = useState("0.05");
  const [agreement, setAgreement] = useState("");
  const scaled = (steps: number) => Math.max(1, Math.round(steps * SIZES[size].scale));
  const planned: Config = {
    warm_start_steps: scaled(base.warm_start_steps),
    grpo_steps: scaled(base.grpo_steps),
    sft_all_steps: scaled(base.sft_all_steps),
    ...config,
  };

  const start = useMutation({
    mutationFn: () =>
      ok(
        api.POST("/api/projects/{project_id}/tasks/{task_id}/runs", {
          params: { path: { project_id, task_id: task.id } },
          body: {
            config: planned,
            judge_upstream_id: judge || null,
            bars: [
              { kind: "judged", name: "judged", delta: Number(delta) },
              ...(agreement
                ? [{ kind: "agreement" as const, name: "agreement", bar: Number(agreement) }]
                : []),
            ],
          },
        }),
      ),
    onSuccess: ({ id }) => navigate(to(`runs/${id}`)),
  });

  const number = (name: keyof Config & string, label: string, hint?: string, step = "1") => (
    <Field label={label} hint={hint}>
      {(id, described) => (
        <Input
          id={id}
          aria-describedby={described}
          type="number"
          min={0}
          step={step}
          value={String(planned[name as keyof typeof planned] ?? base[name as keyof typeof base] ?? "")}
          onChange={(event) =>
            setConfig({
              ...config,
              [name]: event.target.value === "" ? undefined : Number(event.target.value),
            })
          }
        />
      )}
    </Field>
  );

  return (
    <Dialog
      wide
      title="Start a run"
      about={`${count(task.trainable_calls)} trainable calls of ${task.name} will be frozen into train, validation and test.`}
      onClose={onClose}
    >
      <DialogForm
        submit="Start run"
        busy={start.isPending}
        error={start.error}
        disabled={!defaults.judges.length}
        onSubmit={() => start.mutate()}
      >
        {defaults.teachers_forbidden.length > 0 && (
          <Note tone="warn">
            No permission is recorded to train on the answers of{" "}
            {defaults.teachers_forbidden.map((upstream) => upstream.name).join(", ")}: those calls will be
            left out. Read its terms, then record the permission under Keys &amp; upstreams.
          </Note>
        )}
        {defaults.judges.length === 0 && (
          <Note tone="bad">
            No upstream may judge. Record the permission of one under Keys &amp; upstreams first.
          </Note>
        )}
        <Field label="Size" hint={SIZES[size].note}>
          {() => (
            <Segmented
              label="Size"
              value={size}
              onChange={(value) => {
                setSize(value);
                setConfig({});
              }}
              options={(Object.keys(SIZES) as Size[]).map((value) => ({ value, label: SIZES[value].label }))}
            />
          )}
        </Field>
        <Columns>
          <Field label="Judge" hint="Compares answers side by side. Another one than the teacher is better.">
            {(id, described) => (
              <Select
                id={id}
                aria-describedby={described}
                value={judge}
                onChange={(event) => setJudge(event.target.value)}
                options={defaults.judges.map((upstream) => ({ value: upstream.id, label: upstream.name }))}
              />
            )}
          </Field>
          {number("judge_spend_cap_usd", "Most judge spend, USD", "The run pauses there.", "any")}
        </Columns>
        <Columns>
          <Field label="Bar: judged, δ" hint="Non-inferior when the win rate’s lower end is at least ½ − δ.">
            {(id, described) => (
              <Input
                id={id}
                aria-describedby={described}
                type="number"
                min={0}
                max={0.49}
                step="0.01"
                required
                value={delta}
                onChange={(event) => setDelta(event.target.value)}
              />
            )}
          </Field>
          <Field label="Bar: agreement" hint="Optional: exact match’s lower end, 0 to 1.">
            {(id, described) => (
              <Input
                id={id}
                aria-describedby={described}
                type="number"
                min={0}
                max={1}
                step="0.01"
                placeholder="none"
                value={agreement}
                onChange={(event) => setAgreement(event.target.value)}
              />
            )}
          </Field>
        </Columns>
        <details>
          <summary className="muted" style={{ cursor: "pointer" }}>
            Steps and learning
          </summary>
          <div style={{ display: "grid", gap: 16, paddingTop: 16 }}>
            <Columns>
              {number("warm_start_steps", "Warm start steps")}
              {number("grpo_steps", "GRPO steps")}
              {number("sft_all_steps", "Rival’s most steps", "SFT on everything, to its plateau.")}
            </Columns>
            <Columns>
              {number("judge_call_cap", "Most judge calls", "Whatever they cost.")}
              {number("judge_shuffles", "Judge shuffles", "Times a group is judged, each in another order.")}
              {number("kl_beta", "KL weight", "0: off.", "any")}
            </Columns>
            <Columns>
              {number("grpo_prompts", "Prompts per step")}
              {number("grpo_group", "Answers per prompt")}
              {number("lora_rank", "LoRA rank")}
            </Columns>
            <Columns>
              <Field label="Loss">
                {(id) => (
                  <Select
                    id={id}
                    value={config.loss ?? base.loss}
                    onChange={(event) => setConfig({ ...config, loss: event.target.value as Config["loss"] })}
                    options={LOSSES.map((loss) => ({ value: loss, label: loss }))}
                  />
                )}
              </Field>
              {number("grpo_lr", "GRPO learning rate", "Unset: from the model’s width.", "any")}
              {number("seed", "Seed")}
            </Columns>
          </div>
        </details>
      </DialogForm>
    </Dialog>
  );
}
