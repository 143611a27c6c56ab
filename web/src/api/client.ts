// Owns talking to the admin API: typed by its OpenAPI document, failing with what the server said.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

export const api = createClient<paths>({ baseUrl: "/", credentials: "same-origin" });

/** What went wrong, in the server's words. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string | null,
  ) {
    super(message);
  }
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The answer's data. Throws ApiError where the server refused or cannot be reached. */
export async function ok<T>(call: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await call;
  } catch {
    throw new ApiError("Stepdown does not answer. Is `stepdown up` running?", 0, null);
  }
  if (answer.response.ok) return answer.data as T;
  const detail = (answer.error as Schemas["ErrorBody"] | undefined)?.error;
  const fallback = `The server answered ${answer.response.status}.`;
  throw new ApiError(detail?.message ?? fallback, answer.response.status, detail?.code ?? null);
}
