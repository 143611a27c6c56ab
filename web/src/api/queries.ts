// Owns every read of the admin API as a query, with how often it is asked again.
import { queryOptions } from "@tanstack/react-query";
import { api, ok, type Schemas } from "./client";

const FAST = 1500;
const SLOW = 5000;
const ENDED = new Set(["succeeded", "failed", "cancelled"]);

export function isActive(run: { state: string } | undefined): boolean {
  return run !== undefined && !ENDED.has(run.state);
}

export const session = queryOptions({
  queryKey: ["session"],
  queryFn: () => ok(api.GET("/api/session")),
  retry: false,
  staleTime: 60_000,
});

export const me = queryOptions({
  queryKey: ["me"],
  queryFn: () => ok(api.GET("/api/me")),
  staleTime: Infinity,
});

export const health = queryOptions({
  queryKey: ["health"],
  queryFn: () => ok(api.GET("/api/health")),
  refetchInterval: SLOW,
});

export const projects = queryOptions({ queryKey: ["projects"], queryFn: () => ok(api.GET("/api/projects")) });

/** Every query of one project. */
export function of(project_id: string) {
  const path = { project_id };
  return {
    overview: queryOptions({
      queryKey: [project_id, "overview"],
      queryFn: () => ok(api.GET("/api/projects/{project_id}/overview", { params: { path } })),
      refetchInterval: SLOW,
    }),
    usage: (days: number) =>
      queryOptions({
        queryKey: [project_id, "usage", days],
        queryFn: () => ok(api.GET("/api/projects/{project_id}/usage", { params: { path, query: { days } } })),
        refetchInterval: 15_000,
      }),
    call: (call_id: string) =>
      queryOptions({
        queryKey: [project_id, "call", call_id],
        queryFn: () =>
          ok(
            api.GET("/api/projects/{project_id}/calls/{call_id}", { params: { path: { ...path, call_id } } }),
          ),
        staleTime: Infinity,
      }),
    tasks: queryOptions({
      queryKey: [project_id, "tasks"],
      queryFn: () => ok(api.GET("/api/projects/{project_id}/tasks", { params: { path } })),
      refetchInterval: SLOW,
    }),
    task: (task_id: string) =>
      queryOptions({
        queryKey: [project_id, "tasks", task_id],
        queryFn: () =>
          ok(
            api.GET("/api/projects/{project_id}/tasks/{task_id}", { params: { path: { ...path, task_id } } }),
          ),
        refetchInterval: SLOW,
      }),
    runs: (task?: string) =>
      queryOptions({
        queryKey: [project_id, "runs", task ?? "all"],
        queryFn: () => ok(api.GET("/api/projects/{project_id}/runs", { params: { path, query: { task } } })),
        refetchInterval: SLOW,
      }),
    run: (run_id: string) =>
      queryOptions({
        queryKey: [project_id, "runs", run_id],
        queryFn: () =>
          ok(api.GET("/api/projects/{project_id}/runs/{run_id}", { params: { path: { ...path, run_id } } })),
        refetchInterval: (query) => (isActive(query.state.data) ? FAST : SLOW),
      }),
    /** Only the steps that are not known yet are fetched. */
    steps: (run_id: string, phase: string, active: boolean) =>
      queryOptions<Schemas["StepOut"][]>({
        queryKey: [project_id, "runs", run_id, "steps", phase],
        queryFn: async ({ client, queryKey }) => {
          const known = client.getQueryData<Schemas["StepOut"][]>(queryKey) ?? [];
          const after = known.at(-1)?.step;
          const fresh = await ok(
            api.GET("/api/projects/{project_id}/runs/{run_id}/steps", {
              params: { path: { ...path, run_id }, query: { phase, after } },
            }),
          );
          return fresh.length ? [...known, ...fresh] : known;
        },
        refetchInterval: active ? FAST : false,
      }),
    rollouts: (run_id: string, step: number | undefined, active: boolean) =>
      queryOptions({
        queryKey: [project_id, "runs", run_id, "rollouts", step ?? "latest"],
        queryFn: () =>
          ok(
            api.GET("/api/projects/{project_id}/runs/{run_id}/rollouts", {
              params: { path: { ...path, run_id }, query: { step } },
            }),
          ),
        refetchInterval: active && step === undefined ? SLOW : false,
        placeholderData: (before) => before,
      }),
    tokens: (run_id: string, phase: string | undefined, step: number | undefined, active: boolean) =>
      queryOptions({
        queryKey: [project_id, "runs", run_id, "tokens", phase ?? "latest", step ?? "latest"],
        queryFn: () =>
          ok(
            api.GET("/api/projects/{project_id}/runs/{run_id}/tokens", {
              params: { path: { ...path, run_id }, query: { phase, step } },
            }),
          ),
        refetchInterval: active && step === undefined ? SLOW : false,
        placeholderData: (before) => before,
      }),
    events: (run_id: string, active: boolean) =>
      queryOptions({
        queryKey: [project_id, "runs", run_id, "events"],
        queryFn: () =>
          ok(
            api.GET("/api/projects/{project_id}/runs/{run_id}/events", {
              params: { path: { ...path, run_id } },
            }),
          ),
        refetchInterval: active ? FAST : SLOW,
      }),
    runEvaluation: (run_id: string) =>
      queryOptions({
        queryKey: [project_id, "runs", run_id, "evaluation"],
        queryFn: () =>
          ok(
            api.GET("/api/projects/{project_id}/runs/{run_id}/evaluation", {
              params: { path: { ...path, run_id } },
            }),
          ),
        refetchInterval: (query) => (query.state.data?.state === "finished" ? SLOW : FAST),
        retry: false,
      }),
    evaluation: (evaluation_id: string) =>
      queryOptions({
        queryKey: [project_id, "evaluations", evaluation_id],
        queryFn: () =>
          ok(
            api.GET("/api/projects/{project_id}/evaluations/{evaluation_id}", {
              params: { path: { ...path, evaluation_id } },
            }),
          ),
      }),
    outputs: (evaluation_id: string, candidate: string) =>
      queryOptions({
        queryKey: [project_id, "evaluations", evaluation_id, "outputs", candidate],
        queryFn: () =>
          ok(
            api.GET("/api/projects/{project_id}/evaluations/{evaluation_id}/outputs", {
              params: { path: { ...path, evaluation_id }, query: { candidate } },
            }),
          ),
      }),
    routes: queryOptions({
      queryKey: [project_id, "routes"],
      queryFn: () => ok(api.GET("/api/projects/{project_id}/routes", { params: { path } })),
      refetchInterval: SLOW,
    }),
    revisions: (route_id: string) =>
      queryOptions({
        queryKey: [project_id, "routes", route_id],
        queryFn: () =>
          ok(
            api.GET("/api/projects/{project_id}/routes/{route_id}/revisions", {
              params: { path: { ...path, route_id } },
            }),
          ),
        refetchInterval: SLOW,
      }),
    students: queryOptions({
      queryKey: [project_id, "students"],
      queryFn: () => ok(api.GET("/api/projects/{project_id}/students", { params: { path } })),
      refetchInterval: SLOW,
    }),
    keys: queryOptions({
      queryKey: [project_id, "keys"],
      queryFn: () => ok(api.GET("/api/projects/{project_id}/keys", { params: { path } })),
    }),
    upstreams: queryOptions({
      queryKey: [project_id, "upstreams"],
      queryFn: () => ok(api.GET("/api/projects/{project_id}/upstreams", { params: { path } })),
    }),
  };
}

/** Where the live stream of calls is. */
export function callStreamUrl(project_id: string, query: URLSearchParams): string {
  return `/api/projects/${project_id}/calls/stream?${query}`;
}
