import { useQuery } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { useProject } from "../../app/project";
import {
  Badge,
  Button,
  CopyButton,
  Dialog,
  Facts,
  Failure,
  JsonView,
  Loading,
  Note,
  Tabs,
} from "../../design";
import { count, full, ms, usd } from "../../lib/format";
import { HttpStatus, ServedBy } from "../shared/badges";
import { Messages, type Message } from "../shared/Messages";
import css from "./CallDrawer.module.css";
import { DeleteCall } from "./DeleteCall";

type Call = Schemas["CallDetail"];

export function CallDrawer({
  id,
  onClose,
  taskLink,
  trajectoryLink,
}: {
  id: string;
  onClose: () => void;
  taskLink: (task: string) => string;
  trajectoryLink: (trajectory: string) => string;
}) {
  const { q } = useProject();
  const { data: call, error } = useQuery(q.call(id));
  const [deleting, setDeleting] = useState(false);
  if (deleting) return <DeleteCall id={id} onDone={onClose} onClose={() => setDeleting(false)} />;
  return (
    <Dialog
      side
      title={call ? `${call.alias}` : "Call"}
      about={
        <span className="mono">
          {id} <CopyButton text={id} label="Copy id" />
        </span>
      }
      head={
        call && (
          <Button size="sm" icon={<Trash2 size={14} />} onClick={() => setDeleting(true)}>
            Delete
          </Button>
        )
      }
      onClose={onClose}
    >
      <div className={css.body}>
        {error && <Failure error={error} />}
        {!call && !error && <Loading what="the call" />}
        {call && <Detail call={call} taskLink={taskLink} trajectoryLink={trajectoryLink} />}
      </div>
    </Dialog>
  );
}

function Detail({
  call,
  taskLink,
  trajectoryLink,
}: {
  call: Call;
  taskLink: (task: string) => string;
  trajectoryLink: (trajectory: string) => string;
}) {
  const [tab, setTab] = useState("conversation");
  const name = call.student?.name ?? call.upstream?.name;
  return (
    <>
      <div className="row wrap">
        <ServedBy by={call.served_by} name={name} />
        <HttpStatus status={call.status} complete={call.complete} />
        {call.endpoint !== "chat.completions" && <Badge>{call.endpoint}</Badge>}
        {call.streamed && <Badge>streamed</Badge>}
        {call.trainable ? <Badge tone="ok">trainable</Badge> : <Badge tone="warn">never trained on</Badge>}
        {call.task && (
          <Link className="link" to={taskLink(call.task.id)}>
            {call.task.name}
          </Link>
        )}
        {call.trajectory && (
          <Link className="link" to={trajectoryLink(call.trajectory)}>
            trajectory {call.trajectory}
          </Link>
        )}
      </div>
      {call.error && <Note tone="bad">{call.error}</Note>}
      {call.fallback_reason && (
        <Note tone="warn">
          Answered by another than the route asks first: <span className="mono">{call.fallback_reason}</span>
        </Note>
      )}
      <Facts items={factsOf(call)} />
      <Tabs
        label="Parts of the call"
        chosen={tab}
        onChoose={setTab}
        tabs={[
          { id: "conversation", label: "Conversation", content: () => <Conversation call={call} /> },
          { id: "request", label: "Request", content: () => <Body value={call.request} label="request" /> },
          {
            id: "response",
            label: "Response",
            content: () => <Body value={call.response} label="response" />,
          },
        ]}
      />
    </>
  );
}

function factsOf(call: Call): [string, React.ReactNode][] {
  const prices = call.price as { input_per_mtok?: string; output_per_mtok?: string } | null;
  return [
    ["Received", full(call.received_at)],
    ["Latency", ms(call.latency_ms)],
    ["First byte", call.ttfb_ms === null ? null : ms(call.ttfb_ms)],
    ["Our overhead", ms(call.overhead_ms)],
    [
      "Input tokens",
      `${count(call.prompt_tokens)}${call.cached_tokens ? ` (${count(call.cached_tokens)} cached)` : ""}`,
    ],
    [
      "Output tokens",
      `${count(call.completion_tokens)}${call.reasoning_tokens ? ` (${count(call.reasoning_tokens)} reasoning)` : ""}`,
    ],
    ["Cost", usd(call.cost)],
    [
      "Price per million",
      prices?.input_per_mtok ? `${usd(prices.input_per_mtok)} in, ${usd(prices.output_per_mtok)} out` : null,
    ],
    ["Ended by", call.finish_reason],
    ["Route revision", call.route_revision],
    ...Object.entries(call.tags).map(([name, value]): [string, React.ReactNode] => [name, String(value)]),
  ];
}

function Conversation({ call }: { call: Call }) {
  const answers = call.answers as Message[];
  if (!call.request) return <Note>This key captures no bodies.</Note>;
  return (
    <div className={css.conversation}>
      <Messages messages={call.conversation as Message[]} />
      <Messages messages={answers} answer />
      {answers.length === 0 && !!call.response && <JsonView value={call.response} label="response" />}
    </div>
  );
}

function Body({ value, label }: { value: unknown; label: string }) {
  return value ? <JsonView value={value} label={label} /> : <Note>No {label} was kept.</Note>;
}
