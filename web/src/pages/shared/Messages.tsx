// Owns how a conversation is shown: one block for each message, tools and images included.
import { Badge, ModelText } from "../../design";
import css from "./Messages.module.css";

type Part = { type?: string; text?: string; image_url?: { url?: string } };
type ToolCall = { id?: string; function?: { name?: string; arguments?: string } };

export type Message = {
  role?: string;
  name?: string;
  content?: string | Part[] | null;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
  reasoning_content?: string | null;
  refusal?: string | null;
};

export function Messages({ messages, answer }: { messages: Message[]; answer?: boolean }) {
  return (
    <ol className={css.list}>
      {messages.map((message, place) => (
        <li key={place} className={css.message} data-answer={answer || undefined}>
          <div className={css.role}>
            {answer ? "answer" : (message.role ?? "message")}
            {message.name && <span className="dim"> · {message.name}</span>}
            {message.tool_call_id && <span className="mono dim"> · {message.tool_call_id}</span>}
          </div>
          <div className={css.content}>
            {message.reasoning_content && (
              <details>
                <summary className="dim">reasoning</summary>
                <ModelText text={message.reasoning_content} />
              </details>
            )}
            <Content content={message.content} />
            {message.refusal && <p className="muted">Refused: {message.refusal}</p>}
            {message.tool_calls?.map((call, index) => (
              <div key={call.id ?? index} className={css.tool}>
                <Badge tone="info">{call.function?.name ?? "tool"}</Badge>
                <ModelText text={call.function?.arguments ?? ""} />
              </div>
            ))}
          </div>
        </li>
      ))}
    </ol>
  );
}

function Content({ content }: { content: Message["content"] }) {
  if (content === null || content === undefined) return null;
  if (typeof content === "string") return <ModelText text={content} />;
  return content.map((part, place) =>
    part.type === "text" || part.text ? (
      <ModelText key={place} text={part.text ?? ""} />
    ) : (
      <p key={place} className="dim">
        [{part.type ?? "part"}]
      </p>
    ),
  );
}
