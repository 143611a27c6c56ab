import { CircleCheck, CircleAlert } from "lucide-react";
import { createContext, useCallback, useContext, useState, type ReactNode } from "react";
import css from "./Toast.module.css";

type Message = { id: number; text: string; bad: boolean };
type Say = (text: string, bad?: boolean) => void;

const Context = createContext<Say>(() => undefined);

/** `say(text)` shows a line for a few seconds; screen readers hear it. */
export function useToast(): Say {
  return useContext(Context);
}

let last = 0;

export function Toasts({ children }: { children: ReactNode }) {
  const [messages, setMessages] = useState<Message[]>([]);
  const say = useCallback<Say>((text, bad = false) => {
    const id = ++last;
    setMessages((all) => [...all, { id, text, bad }]);
    setTimeout(() => setMessages((all) => all.filter((message) => message.id !== id)), bad ? 8000 : 4000);
  }, []);
  return (
    <Context value={say}>
      {children}
      <div className={css.stack} role="status" aria-live="polite">
        {messages.map((message) => (
          <div key={message.id} className={`${css.toast} ${message.bad ? css.bad : ""}`}>
            {message.bad ? <CircleAlert size={15} aria-hidden /> : <CircleCheck size={15} aria-hidden />}
            {message.text}
          </div>
        ))}
      </div>
    </Context>
  );
}
