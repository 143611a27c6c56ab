// Owns what surrounds every page: queries, toasts, the way from an address to a page.
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createBrowserRouter, Navigate } from "react-router";
import { RouterProvider } from "react-router/dom";
import { ApiError } from "../api/client";
import { session } from "../api/queries";
import { Toasts } from "../design";
import { AccessPage } from "../pages/access/AccessPage";
import { CallsPage } from "../pages/calls/CallsPage";
import { OutputsPage } from "../pages/outputs/OutputsPage";
import { OverviewPage } from "../pages/overview/OverviewPage";
import { RoutesPage } from "../pages/routes/RoutesPage";
import { RunPage } from "../pages/run/RunPage";
import { RunsPage } from "../pages/run/RunsPage";
import { TaskPage } from "../pages/task/TaskPage";
import { TasksPage } from "../pages/task/TasksPage";
import { UsagePage } from "../pages/usage/UsagePage";
import { Broken, NotFound } from "./Broken";
import { Gate } from "./Gate";
import { Home, Shell } from "./Shell";

function onError(error: Error) {
  // An expired session anywhere leads back to the sign-in page.
  if (error instanceof ApiError && error.code === "admin_token_required")
    void client.resetQueries({ queryKey: session.queryKey });
}

const client: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      retry: (failures, error) =>
        failures < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
      staleTime: 1000,
    },
  },
});

const router = createBrowserRouter([
  {
    element: <Gate />,
    errorElement: <Broken />,
    children: [
      { index: true, element: <Home /> },
      {
        path: "p/:projectId",
        element: <Shell />,
        children: [
          { index: true, element: <OverviewPage /> },
          { path: "calls", element: <CallsPage /> },
          { path: "tasks", element: <TasksPage /> },
          { path: "tasks/:taskId", element: <TaskPage /> },
          { path: "runs", element: <RunsPage /> },
          { path: "runs/:runId", element: <RunPage /> },
          { path: "runs/:runId/outputs", element: <OutputsPage /> },
          { path: "routes", element: <RoutesPage /> },
          { path: "usage", element: <UsagePage /> },
          { path: "access", element: <AccessPage /> },
          { path: "*", element: <NotFound /> },
        ],
      },
      { path: "*", element: <Navigate to="/" replace /> },
    ],
  },
]);

export function App() {
  return (
    <QueryClientProvider client={client}>
      <Toasts>
        <RouterProvider router={router} />
      </Toasts>
    </QueryClientProvider>
  );
}
