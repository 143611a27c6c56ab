import { useQuery } from "@tanstack/react-query";
import { CloudCog, Plus } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { Badge, Button, Card, EmptyState, Failure, Loading, Table, type Tone } from "../../design";
import { usd } from "../../lib/format";
import { UpstreamForm } from "./UpstreamForm";

type Upstream = Schemas["UpstreamOut"];

const PERMISSION: Record<string, Tone> = { allowed: "ok", forbidden: "bad", unknown: "warn" };

export function Upstreams() {
  const { q } = useProject();
  const { data, error } = useQuery(q.upstreams);
  const [form, setForm] = useState<{ upstream?: Upstream } | null>(null);
  return (
    <Card
      title="Upstreams"
      note="providers that calls are relayed to"
      flush
      actions={
        <Button icon={<Plus size={14} />} onClick={() => setForm({})}>
          Add upstream
        </Button>
      }
    >
      {error && <Failure error={error} />}
      {!data && !error && <Loading what="upstreams" />}
      {data?.length === 0 && (
        <EmptyState icon={<CloudCog size={18} />} title="No upstream yet">
          The provider that answers your app today. Its key is stored encrypted and never shown again.
        </EmptyState>
      )}
      {data && data.length > 0 && (
        <Table
          label="Upstreams"
          rows={data}
          rowKey={(upstream) => upstream.id}
          columns={[
            {
              head: "Upstream",
              cell: (upstream) => (
                <span style={{ display: "grid" }}>
                  <strong style={{ fontWeight: 500 }}>{upstream.name}</strong>
                  <span className="mono dim">{upstream.base_url ?? upstream.kind}</span>
                </span>
              ),
            },
            {
              head: "Model",
              cell: (upstream) => <span className="mono">{upstream.model ?? "as asked"}</span>,
            },
            {
              head: "Train on its answers",
              cell: (upstream) => (
                <Permission value={upstream.train_on_output} source={upstream.terms_source} />
              ),
            },
            {
              head: "Judge with it",
              cell: (upstream) => <Permission value={upstream.judge_with} source={upstream.terms_source} />,
            },
            {
              head: "Key",
              cell: (upstream) => (upstream.has_credential ? "stored" : <span className="dim">none</span>),
            },
            {
              head: "USD per million tokens",
              align: "right",
              cell: (upstream) =>
                upstream.prices ? (
                  `${usd(upstream.prices.input_per_mtok)} in, ${usd(upstream.prices.output_per_mtok)} out`
                ) : (
                  <span className="dim">unknown</span>
                ),
            },
            {
              head: <span className="visually-hidden">Actions</span>,
              align: "right",
              cell: (upstream) => (
                <Button size="sm" onClick={() => setForm({ upstream })}>
                  Change
                </Button>
              ),
            },
          ]}
        />
      )}
      {form && <UpstreamForm upstream={form.upstream} onClose={() => setForm(null)} />}
    </Card>
  );
}

function Permission({ value, source }: { value: string; source: string | null }) {
  return (
    <Badge tone={PERMISSION[value] ?? "neutral"} title={source ?? undefined}>
      {value}
    </Badge>
  );
}
