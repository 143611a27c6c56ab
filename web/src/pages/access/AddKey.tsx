// Owns making a key of either kind, and showing it the one time.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok, type Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { CodeBlock, Columns, Dialog, DialogForm, Field, Input, Note, Segmented } from "../../design";
import { Connect } from "../shared/Connect";

type Capture = NonNullable<Schemas["KeyIn"]["capture"]>;

const RULES = ["email", "phone", "credit_card", "iban", "ipv4", "us_ssn", "secret"];
const CAPTURES: { value: Capture; label: string }[] = [
  { value: "full", label: "all" },
  { value: "metadata", label: "figures" },
  { value: "off", label: "nothing" },
];

export function AddKey({ onClose }: { onClose: () => void }) {
  const { id: project_id, q } = useProject();
  const client = useQueryClient();
  const { data: routes } = useQuery(q.routes);
  const { data: upstreams } = useQuery(q.upstreams);
  const [through, setThrough] = useState("");
  const [capture, setCapture] = useState<Capture>("full");
  const [redact, setRedact] = useState<string[]>([]);
  const [text, setText] = useState({ name: "", most: "", sample: "100", days: "" });
  const passable = upstreams?.filter((upstream) => upstream.kind !== "litellm") ?? [];
  const create = useMutation({
    mutationFn: () =>
      ok(
        api.POST("/api/projects/{project_id}/keys", {
          params: { path: { project_id } },
          body: {
            name: text.name,
            capture,
            max_concurrent: text.most ? Number(text.most) : null,
            sample: Number(text.sample || 100) / 100,
            retention_days: text.days ? Number(text.days) : null,
            redact: redact.map((name) => ({ name })),
            upstream_id: through || null,
          },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: [project_id] }),
  });
  if (create.data)
    return (
      <Dialog title={through ? "Your new address" : "Your new key"} wide onClose={onClose}>
        <div style={{ display: "grid", gap: 16, padding: 20 }}>
          <Note tone="warn">Copy it now: it is shown this once and cannot be read again.</Note>
          <CodeBlock label="key" code={create.data.key} />
          <Connect
            apiKey={through ? "the provider’s key, as before" : create.data.key}
            token={through ? create.data.key : undefined}
            model={routes?.find((route) => route.alias !== "*")?.alias}
          />
        </div>
      </Dialog>
    );

  const line = (name: keyof typeof text, label: string, hint: string, type = "number") => (
    <Field label={label} hint={hint}>
      {(id, described) => (
        <Input
          id={id}
          aria-describedby={described}
          autoFocus={name === "name"}
          type={type}
          min={name === "sample" ? 0 : 1}
          max={name === "sample" ? 100 : undefined}
          maxLength={100}
          value={text[name]}
          onChange={(event) => setText({ ...text, [name]: event.target.value })}
        />
      )}
    </Field>
  );
  return (
    <Dialog wide title="Make a key" onClose={onClose}>
      <DialogForm
        submit="Make key"
        busy={create.isPending}
        error={create.error}
        disabled={!text.name.trim()}
        onSubmit={() => create.mutate()}
      >
        {line("name", "Name", "The app or the person that uses it.", "text")}
        <Field
          label="The app sends"
          hint={
            through
              ? "The token is part of the base URL. Its own key is relayed to this provider alone, never stored."
              : "The gateway key; providers’ keys stay here."
          }
        >
          {() => (
            <Segmented
              label="The app sends"
              value={through}
              onChange={setThrough}
              options={[
                { value: "", label: "this key" },
                ...passable.map(({ id, name }) => ({ value: id, label: `its own key for ${name}` })),
              ]}
            />
          )}
        </Field>
        <Columns>
          <Field label="Captures" hint="What is kept of its calls; the charge always is.">
            {() => <Segmented label="Captures" value={capture} onChange={setCapture} options={CAPTURES} />}
          </Field>
          {line("sample", "Conversations kept, %", "Of the others only figures are kept.")}
        </Columns>
        <Columns>
          {line("most", "Calls at once", "One more gets 429, in each process. Empty: any number.")}
          {line("days", "Days kept", "Empty: as long as the project keeps calls.")}
        </Columns>
        <fieldset style={{ border: 0, padding: 0, margin: 0 }}>
          <legend>Taken out before anything is kept</legend>
          <div className="row wrap">
            {RULES.map((rule) => (
              <label key={rule} className="row">
                <input
                  type="checkbox"
                  checked={redact.includes(rule)}
                  onChange={(event) =>
                    setRedact(event.target.checked ? [...redact, rule] : redact.filter((r) => r !== rule))
                  }
                />
                <span className="mono">{rule}</span>
              </label>
            ))}
          </div>
        </fieldset>
      </DialogForm>
    </Dialog>
  );
}
