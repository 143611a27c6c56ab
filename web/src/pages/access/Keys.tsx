import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { api, ok, type Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import {
  Badge,
  Button,
  Card,
  Dialog,
  DialogForm,
  EmptyState,
  Failure,
  Loading,
  Table,
  useToast,
} from "../../design";
import { Ago } from "../shared/badges";
import { AddKey } from "./AddKey";

type Key = Schemas["KeyOut"];

function captured(key: Key) {
  const more = [
    key.sample < 1 && `${Math.round(key.sample * 100)} %`,
    key.redact.length > 0 && `redacted (${key.redact.map((rule) => rule.name ?? "own rule").join(", ")})`,
    key.retention_days && `${key.retention_days} days`,
  ].filter(Boolean);
  return [key.capture, ...more].join(", ");
}

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
            {
              head: "Kind",
              cell: (key) =>
                key.upstream_id ? (
                  <Badge tone="info">pass-through</Badge>
                ) : (
                  <span className="dim">gateway key</span>
                ),
            },
            { head: "Captures", cell: captured },
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
