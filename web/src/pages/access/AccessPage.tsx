import { Page } from "../../design";
import { Kept } from "./Kept";
import { Keys } from "./Keys";
import { Upstreams } from "./Upstreams";

export function AccessPage() {
  return (
    <Page title="Keys & upstreams" about="Who may call, and where their calls go.">
      <Upstreams />
      <Keys />
      <Kept />
    </Page>
  );
}
