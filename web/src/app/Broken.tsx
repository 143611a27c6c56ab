import { useRouteError } from "react-router";
import { Button, EmptyState, Page } from "../design";

/** A page that failed: what happened, and a way on. */
export function Broken() {
  const error = useRouteError();
  return (
    <EmptyState
      title="This page failed"
      action={<Button onClick={() => location.assign("/")}>Open the overview</Button>}
    >
      {error instanceof Error ? error.message : String(error)}
    </EmptyState>
  );
}

export function NotFound() {
  return (
    <Page title="Not found">
      <EmptyState title="There is no such page">Choose one on the left.</EmptyState>
    </Page>
  );
}
