// Owns the order in which further upstreams are asked when those before them give no answer.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ArrowDown, ArrowUp, Plus, X } from "lucide-react";
import { useState } from "react";
import { api, ok, type Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import { Button, Dialog, DialogForm, Input, Note, Select, useToast } from "../../design";

type Fallback = { upstream_id: string; upstream_model: string };

/** `list` with the rows at `i` and `j` in each other's place. */
function swapped<T>(list: T[], i: number, j: number): T[] {
  return list.map((row, at) => (at === i ? (list[j] ?? row) : at === j ? (list[i] ?? row) : row));
}

export function Fallbacks({ route, onClose }: { route: Schemas["RouteOut"]; onClose: () => void }) {
  const { id: project_id, q } = useProject();
  const client = useQueryClient();
  const say = useToast();
  const { data: upstreams } = useQuery(q.upstreams);
  const [rows, setRows] = useState<Fallback[]>(() =>
    route.fallbacks.map((one) => ({
      upstream_id: one.upstream.id,
      upstream_model: one.upstream_model ?? "",
    })),
  );
  const others = (upstreams ?? []).filter((one) => one.id !== route.upstream.id);
  const change = (at: number, fields: Partial<Fallback>) =>
    setRows(rows.map((row, i) => (i === at ? { ...row, ...fields } : row)));
  const save = useMutation({
    mutationFn: () =>
      ok(
        api.PUT("/api/projects/{project_id}/routes/{route_id}/fallbacks", {
          params: { path: { project_id, route_id: route.id } },
          body: {
            fallbacks: rows.map((row) => ({ ...row, upstream_model: row.upstream_model.trim() || null })),
          },
        }),
      ),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: [project_id] });
      say(rows.length ? "The fallbacks are in force." : "The route has no fallbacks.");
      onClose();
    },
  });
  return (
    <Dialog
      title="Fallbacks"
      about={
        <>
          Asked in this order for <span className="mono">{route.alias}</span> where {route.upstream.name} is
          out of reach, too slow, or answers 429 or 5xx
        </>
      }
      onClose={onClose}
    >
      <DialogForm
        submit="Put in force"
        busy={save.isPending}
        error={save.error}
        onSubmit={() => save.mutate()}
      >
        {rows.length === 0 && (
          <Note tone="info">Without a fallback the app gets the upstream’s own error, untouched.</Note>
        )}
        {rows.map((row, i) => (
          <div key={i} className="row" role="group" aria-label={`Fallback ${i + 1}`}>
            <Select
              aria-label="Upstream"
              value={row.upstream_id}
              onChange={(event) => change(i, { upstream_id: event.target.value })}
              options={(upstreams ?? []).map((one) => ({ value: one.id, label: one.name }))}
            />
            <Input
              aria-label="Model name there"
              className="mono"
              placeholder={route.alias === "*" ? "as asked" : route.alias}
              value={row.upstream_model}
              onChange={(event) => change(i, { upstream_model: event.target.value })}
            />
            <Button
              kind="ghost"
              size="sm"
              aria-label="Ask earlier"
              title="Ask earlier"
              disabled={i === 0}
              icon={<ArrowUp size={14} />}
              onClick={() => setRows(swapped(rows, i, i - 1))}
            />
            <Button
              kind="ghost"
              size="sm"
              aria-label="Ask later"
              title="Ask later"
              disabled={i === rows.length - 1}
              icon={<ArrowDown size={14} />}
              onClick={() => setRows(swapped(rows, i, i + 1))}
            />
            <Button
              kind="ghost"
              size="sm"
              aria-label="Remove"
              title="Remove"
              icon={<X size={14} />}
              onClick={() => setRows(rows.filter((_, at) => at !== i))}
            />
          </div>
        ))}
        <Button
          icon={<Plus size={14} />}
          disabled={!upstreams?.length || rows.length >= 8}
          onClick={() =>
            setRows([...rows, { upstream_id: (others[0] ?? upstreams?.[0])?.id ?? "", upstream_model: "" }])
          }
        >
          Add a fallback
        </Button>
      </DialogForm>
    </Dialog>
  );
}
