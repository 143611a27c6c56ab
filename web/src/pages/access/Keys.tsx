import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { api, ok, type Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import {
  Badge,
  Button,
  Card,
  CodeBlock,
  Dialog,
  DialogForm,
  EmptyState,
  Failure,
  Field,
  Input,
  Loading,
  Note,
  Table,
  useToast,
} from "../../design";
import { Ago } from "../shared/badges";
import { Connect } from "../shared/Connect";

type Key = Schemas["KeyOut"];

export function Keys() {
  const { q } = useProject();
  const { data, error } = useQuery(q.keys);
  const [adding, setAdding] = useState(false);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const add = (
    <Button icon={<Plus size={14} />} onClick={() => setAdding(true)}>
      Make key
    </Button>
  );
  return (
    <Card title="Gateway keys" note="what apps authenticate with; only a hash is kept" actions={add} flush>
      {error && <Failure error={error} />}
      {!data && !error && <Loading what="keys" />}
      {data?.length === 0 && (
        <EmptyState icon={<KeyRound size={18} />} title="No key yet">
          Your app sends it instead of the provider’s key.
        </EmptyState>
      )}
      {data && data.length > 0 && (
        <Table
          label="Gateway keys"
          rows={data}
          rowKey={(key) => key.id}
          columns={[
            { head: "Name", cell: (key) => <strong style={{ fontWeight: 500 }}>{key.name}</strong> },
            { head: "Begins with", cell: (key) => <span className="mono">{key.prefix}…</span> },
            { head: "Captures", cell: (key) => key.capture },
            {
              head: "Calls at once",
              align: "right",
              cell: (key) => key.max_concurrent ?? <span className="dim">any number</span>,
            },
            {
              head: "State",
              cell: (key) => (key.revoked_at ? <Badge>revoked</Badge> : <Badge tone="ok">active</Badge>),
            },
            { head: "Made", align: "right", cell: (key) => <Ago time={key.created_at} /> },
            {
              head: <span className="visually-hidden">Actions</span>,
              align: "right",
              cell: (key) =>
                !key.revoked_at && (
                  <Button size="sm" kind="danger" onClick={() => setRevoking(key)}>
                    Revoke
                  </Button>
                ),
            },
          ]}
        />
      )}
      {adding && <AddKey onClose={() => setAdding(false)} />}
      {revoking && <Revoke gatewayKey={revoking} onClose={() => setRevoking(null)} />}
    </Card>
  );
}

function AddKey({ onClose }: { onClose: () => void }) {
  const { id: project_id, q } = useProject();
  const client = useQueryClient();
  const { data: routes } = useQuery(q.routes);
  const [name, setName] = useState("");
  const [most, setMost] = useState("");
  const create = useMutation({
    mutationFn: () =>
      ok(
        api.POST("/api/projects/{project_id}/keys", {
          params: { path: { project_id } },
          body: { name, max_concurrent: most ? Number(most) : null },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: [project_id] }),
  });
  if (create.data)
    return (
      <Dialog title="Your new key" wide onClose={onClose}>
        <div style={{ display: "grid", gap: 16, padding: 20 }}>
          <Note tone="warn">Copy it now: it is shown this once and cannot be read again.</Note>
          <CodeBlock label="key" code={create.data.key} />
          <Connect apiKey={create.data.key} model={routes?.find((route) => route.alias !== "*")?.alias} />
        </div>
      </Dialog>
    );
  return (
    <Dialog title="Make a key" onClose={onClose}>
      <DialogForm
        submit="Make key"
        busy={create.isPending}
        error={create.error}
        disabled={!name.trim()}
        onSubmit={() => create.mutate()}
      >
        <Field label="Name" hint="The app or the person that uses it.">
          {(id, described) => (
            <Input
              id={id}
              aria-describedby={described}
              autoFocus
              maxLength={100}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <Field
          label="Calls at once"
          hint="One more gets 429. Counted in each gateway process; leave empty for any number."
        >
          {(id, described) => (
            <Input
              id={id}
              aria-describedby={described}
              type="number"
              min={1}
              value={most}
              onChange={(event) => setMost(event.target.value)}
            />
          )}
        </Field>
      </DialogForm>
    </Dialog>
  );
}

function Revoke({ gatewayKey, onClose }: { gatewayKey: Key; onClose: () => void }) {
  const { id: project_id } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const revoke = useMutation({
    mutationFn: () =>
      ok(
        api.DELETE("/api/projects/{project_id}/keys/{key_id}", {
          params: { path: { project_id, key_id: gatewayKey.id } },
        }),
      ),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: [project_id] });
      say(`${gatewayKey.name} is revoked.`);
      onClose();
    },
  });
  return (
    <Dialog title={`Revoke ${gatewayKey.name}?`} onClose={onClose}>
      <DialogForm
        danger
        submit="Revoke key"
        busy={revoke.isPending}
        error={revoke.error}
        onSubmit={() => revoke.mutate()}
      >
        <p>Apps that use it are refused within a second. This cannot be undone; its calls stay.</p>
      </DialogForm>
    </Dialog>
  );
}
