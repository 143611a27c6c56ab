// Owns the live list of calls: server-sent events merged into the list's cache.
import { useEffect, useState } from "react";
import type { Schemas } from "./client";

type Call = Schemas["CallRow"];

/** Calls `onCall` for each new call while `on`. Returns whether the stream is connected. */
export function useCallStream(url: string, on: boolean, onCall: (call: Call) => void): boolean {
  const [connected, setConnected] = useState(false);
  useEffect(() => {
    if (!on) return;
    const source = new EventSource(url);
    source.onopen = () => setConnected(true);
    source.onerror = () => setConnected(false);
    source.addEventListener("call", (event: MessageEvent<string>) => onCall(JSON.parse(event.data) as Call));
    return () => {
      source.close();
      setConnected(false);
    };
  }, [url, on, onCall]);
  return connected;
}
