import { useInfiniteQuery, useQuery, useQueryClient, type InfiniteData } from "@tanstack/react-query";
import { Activity, Pause, Play, X } from "lucide-react";
import { useCallback, useDeferredValue, useMemo, useState } from "react";
import { useSearchParams } from "react-router";
import { api, ok, type Schemas } from "../../api/client";
import { useCallStream } from "../../api/live";
import { callStreamUrl } from "../../api/queries";
import { useProject } from "../../app/project";
import {
  Badge,
  Button,
  Card,
  EmptyState,
  Failure,
  Loading,
  Page,
  SearchBox,
  Select,
  Table,
  type Column,
} from "../../design";
import { count, ms, short, usd } from "../../lib/format";
import { At, HttpStatus, ServedBy } from "../shared/badges";
import { Connect } from "../shared/Connect";
import { CallDrawer } from "./CallDrawer";
import css from "./CallsPage.module.css";

type Call = Schemas["CallRow"];
type CallPages = InfiniteData<Schemas["CallPage"], string | undefined>;
type Served = "upstream" | "student" | "gateway";

const PAGE = 60;

export function CallsPage() {
  const { id: project_id, to } = useProject();
  const [search, setSearch] = useSearchParams();
  const [live, setLive] = useState(true);
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  const client = useQueryClient();

  const text = useDeferredValue(search.toString());
  const filter = useMemo(() => filterOf(new URLSearchParams(text)), [text]);
  const narrowed = Object.values(filter).some(Boolean);
  const queryKey = useMemo(() => [project_id, "calls", filter], [project_id, filter]);
  const list = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) =>
      ok(
        api.GET("/api/projects/{project_id}/calls", {
          params: { path: { project_id }, query: { ...filter, limit: PAGE, before: pageParam } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_before ?? undefined,
    placeholderData: (before) => before,
  });

  const onCall = useCallback(
    (call: Call) => {
      setFresh((known) => new Set([...known, call.id]));
      client.setQueryData<CallPages>(queryKey, (data) => data && withCall(data, call));
    },
    [client, queryKey],
  );
  const url = callStreamUrl(
    project_id,
    new URLSearchParams(Object.entries(filter).filter((pair): pair is [string, string] => Boolean(pair[1]))),
  );
  const connected = useCallStream(url, live, onCall);

  const calls = list.data?.pages.flatMap((page) => page.calls) ?? [];
  const open = search.get("call");
  const change = (name: string, value: string | null) =>
    setSearch(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      // At once: what is typed while a slower change is under way would start from the address before it.
      { replace: name !== "call", flushSync: true },
    );

  return (
    <Page
      title="Calls"
      about="Every request and its answer, as they come."
      actions={
        <>
          <Badge tone={live && connected ? "ok" : "neutral"} pulse={live && connected}>
            {live ? (connected ? "live" : "connecting") : "paused"}
          </Badge>
          <Button icon={live ? <Pause size={14} /> : <Play size={14} />} onClick={() => setLive(!live)}>
            {live ? "Pause" : "Go on"}
          </Button>
        </>
      }
    >
      <Filters search={search} change={change} />
      {list.error && <Failure error={list.error} />}
      <Card flush>
        {list.isPending && <Loading what="calls" />}
        {list.data && calls.length === 0 && <Nothing narrowed={narrowed} reset={() => setSearch({})} />}
        {calls.length > 0 && (
          <Table
            label="Calls, newest first"
            rows={calls}
            rowKey={(call) => call.id}
            columns={COLUMNS}
            onOpen={(call) => change("call", call.id)}
            selected={open ?? undefined}
            fresh={fresh}
          />
        )}
        {list.hasNextPage && (
          <div className={css.more}>
            <Button kind="ghost" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
              Show older calls
            </Button>
          </div>
        )}
      </Card>
      {open && (
        <CallDrawer
          key={open}
          id={open}
          onClose={() => change("call", null)}
          taskLink={(task) => to(`tasks/${task}`)}
          trajectoryLink={(trajectory) => `${to("calls")}?${new URLSearchParams({ trajectory })}`}
        />
      )}
    </Page>
  );
}

const COLUMNS: Column<Call>[] = [
  { head: "Time", cell: (call) => <At time={call.received_at} />, width: "84px" },
  {
    head: "Message",
    primary: true,
    cell: (call) => (
      <span className={css.preview}>
        <span className="clip">{call.preview || <span className="dim">no text</span>}</span>
        <span className={`clip ${css.answer}`}>{call.error ?? call.answer_preview}</span>
      </span>
    ),
  },
  {
    head: "Task",
    minor: true,
    width: "150px",
    cell: (call) => (
      <span className={`clip ${css.task}`}>{call.task?.name ?? <span className="dim">none</span>}</span>
    ),
  },
  {
    head: "Answered by",
    cell: (call) => (
      <ServedBy
        by={call.served_by}
        name={call.student?.name ?? (call.served_by === "upstream" ? call.upstream?.name : null)}
      />
    ),
  },
  { head: "Status", cell: (call) => <HttpStatus status={call.status} complete={call.complete} /> },
  { head: "Latency", align: "right", cell: (call) => ms(call.latency_ms) },
  {
    head: "Tokens in → out",
    align: "right",
    minor: true,
    cell: (call) => (
      <>
        {short(call.prompt_tokens)} <span className="dim">→</span> {short(call.completion_tokens)}
      </>
    ),
  },
  { head: "Cost", align: "right", cell: (call) => usd(call.cost) },
];

function filterOf(search: URLSearchParams) {
  return {
    task: search.get("task") ?? undefined,
    served_by: (search.get("served_by") as Served | null) ?? undefined,
    status: search.get("status") ?? undefined,
    q: search.get("q") ?? undefined,
    trajectory: search.get("trajectory") ?? undefined,
  };
}

/** The pages with a new call in its place: ids sort by time. */
function withCall(data: CallPages, call: Call): CallPages {
  const [first, ...rest] = data.pages;
  if (!first || first.calls.some((known) => known.id === call.id)) return data;
  const calls = [call, ...first.calls].sort((a, b) => (a.id < b.id ? 1 : -1));
  return { ...data, pages: [{ ...first, calls }, ...rest] };
}

function Filters({
  search,
  change,
}: {
  search: URLSearchParams;
  change: (name: string, value: string | null) => void;
}) {
  const { q } = useProject();
  const { data: tasks } = useQuery(q.tasks);
  return (
    <div className={css.filters}>
      <SearchBox
        label="Search how messages and answers begin"
        value={search.get("q") ?? ""}
        onChange={(text) => change("q", text)}
      />
      <Select
        aria-label="Task"
        className={css.filter}
        value={search.get("task") ?? ""}
        onChange={(event) => change("task", event.target.value)}
        options={[
          { value: "", label: "Every task" },
          ...(tasks ?? []).map((task) => ({ value: task.id, label: task.name })),
          { value: "none", label: "No task recognised" },
        ]}
      />
      <Select
        aria-label="Answered by"
        className={css.filter}
        value={search.get("served_by") ?? ""}
        onChange={(event) => change("served_by", event.target.value)}
        options={[
          { value: "", label: "Answered by anyone" },
          { value: "upstream", label: "Answered by upstream" },
          { value: "student", label: "Answered by student" },
          { value: "gateway", label: "Refused by gateway" },
        ]}
      />
      <Select
        aria-label="Status"
        className={css.filter}
        value={search.get("status") ?? ""}
        onChange={(event) => change("status", event.target.value)}
        options={[
          { value: "", label: "Any status" },
          { value: "ok", label: "Whole answers" },
          { value: "error", label: "Errors and cut-offs" },
          { value: "429", label: "429 rate limited" },
          { value: "500", label: "500 server error" },
        ]}
      />
      {search.get("trajectory") && (
        <Button icon={<X size={14} />} onClick={() => change("trajectory", null)}>
          Trajectory {search.get("trajectory")}
        </Button>
      )}
    </div>
  );
}

function Nothing({ narrowed, reset }: { narrowed: boolean; reset: () => void }) {
  if (narrowed)
    return (
      <EmptyState title="No call fits these filters" action={<Button onClick={reset}>Clear filters</Button>}>
        {count(0)} calls found.
      </EmptyState>
    );
  return (
    <EmptyState icon={<Activity size={18} />} title="No calls yet" action={<Connect />}>
      Point your app’s OpenAI client here. Its calls go to your upstream as before and appear in this list.
    </EmptyState>
  );
}
