// Owns the form of an upstream: its address, its key, what its terms allow, what it costs.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok, type Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { Columns, Dialog, DialogForm, Field, Input, Segmented, useToast } from "../../design";

type Upstream = Schemas["UpstreamOut"];
type Kind = NonNullable<Schemas["UpstreamIn"]["kind"]>;
type Permission = "allowed" | "forbidden" | "unknown";

const PERMISSIONS = (["allowed", "forbidden", "unknown"] as const).map((value) => ({ value, label: value }));

const KINDS: Record<Kind, { label: string; hint: string }> = {
  openai: { label: "OpenAI", hint: "Speaks OpenAI’s wire: bytes pass untouched." },
  anthropic: { label: "Anthropic", hint: "Speaks Messages: bytes pass untouched." },
  azure: { label: "Azure", hint: "OpenAI’s wire under Azure’s addresses: bytes pass untouched." },
  litellm: { label: "Other", hint: "Translated through litellm, chat completions alone." },
};

export function UpstreamForm({ upstream, onClose }: { upstream?: Upstream; onClose: () => void }) {
  const { id: project_id } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const [kind, setKind] = useState<Kind>("openai");
  const [text, setText] = useState({
    name: upstream?.name ?? "",
    base_url: upstream?.base_url ?? "",
    model: upstream?.model ?? "",
    api_key: "",
    terms_source: upstream?.terms_source ?? "",
    input: upstream?.prices?.input_per_mtok ?? "",
    cached: upstream?.prices?.cached_input_per_mtok ?? "",
    output: upstream?.prices?.output_per_mtok ?? "",
  });
  const [train, setTrain] = useState((upstream?.train_on_output as Permission | undefined) ?? "unknown");
  const [judge, setJudge] = useState((upstream?.judge_with as Permission | undefined) ?? "unknown");

  const save = useMutation({
    mutationFn: async () => {
      const priced = text.input !== "" && text.output !== "";
      const same =
        upstream?.prices?.input_per_mtok === text.input &&
        upstream.prices.output_per_mtok === text.output &&
        upstream.prices.cached_input_per_mtok === text.cached;
      const body = {
        base_url: text.base_url || null,
        model: text.model || null,
        train_on_output: train,
        judge_with: judge,
        terms_source: text.terms_source || null,
        prices:
          priced && !same
            ? {
                input_per_mtok: text.input,
                cached_input_per_mtok: text.cached || null,
                output_per_mtok: text.output,
              }
            : null,
      };
      if (upstream)
        await ok(
          api.PATCH("/api/projects/{project_id}/upstreams/{upstream_id}", {
            params: { path: { project_id, upstream_id: upstream.id } },
            body: { ...body, api_key: text.api_key || null },
          }),
        );
      else
        await ok(
          api.POST("/api/projects/{project_id}/upstreams", {
            params: { path: { project_id } },
            body: { ...body, name: text.name, kind, api_key: text.api_key },
          }),
        );
    },
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: [project_id] });
      say(upstream ? "The upstream is changed." : "The upstream is added. Route a model name to it next.");
      onClose();
    },
  });

  const line = (name: keyof typeof text, label: string, hint?: string, type = "text") => (
    <Field label={label} hint={hint}>
      {(id, described) => (
        <Input
          id={id}
          aria-describedby={described}
          type={type}
          step="any"
          min={0}
          autoComplete={type === "password" ? "new-password" : "off"}
          value={text[name]}
          onChange={(event) => setText({ ...text, [name]: event.target.value })}
        />
      )}
    </Field>
  );

  return (
    <Dialog wide title={upstream ? `Change ${upstream.name}` : "Add an upstream"} onClose={onClose}>
      <DialogForm
        submit={upstream ? "Save" : "Add upstream"}
        busy={save.isPending}
        error={save.error}
        disabled={!upstream && !text.name.trim()}
        onSubmit={() => save.mutate()}
      >
        {!upstream && (
          <Columns>
            {line("name", "Name", "For people: openai, anthropic, our-azure.")}
            <Field label="Wire" hint={KINDS[kind].hint}>
              {() => (
                <Segmented
                  label="Wire"
                  value={kind}
                  onChange={setKind}
                  options={(Object.keys(KINDS) as Kind[]).map((value) => ({
                    value,
                    label: KINDS[value].label,
                  }))}
                />
              )}
            </Field>
          </Columns>
        )}
        <Columns>
          {line(
            "base_url",
            "Base URL",
            kind === "azure"
              ? "Of the resource, with ?api-version=… for clients that send none."
              : "Up to and including /v1.",
            "url",
          )}
          {line(
            "api_key",
            "Key",
            upstream?.has_credential ? "Empty keeps the stored one." : "Stored encrypted, never shown.",
            "password",
          )}
        </Columns>
        {line("model", "Model for judging and teaching", "Empty: the one that the app asks for.")}
        <Columns>
          <Field label="May its answers be trained on?">
            {() => (
              <Segmented
                label="Train on its answers"
                value={train}
                onChange={setTrain}
                options={PERMISSIONS}
              />
            )}
          </Field>
          <Field label="May it judge for training?">
            {() => (
              <Segmented label="Judge with it" value={judge} onChange={setJudge} options={PERMISSIONS} />
            )}
          </Field>
        </Columns>
        {line(
          "terms_source",
          "Where its terms say so",
          "A link or a contract: kept beside everything learned from it.",
        )}
        <Columns>
          {line("input", "Input price", "USD per million tokens", "number")}
          {line("cached", "Cached input price", "Empty: as input", "number")}
          {line("output", "Output price", "USD per million tokens", "number")}
        </Columns>
      </DialogForm>
    </Dialog>
  );
}
