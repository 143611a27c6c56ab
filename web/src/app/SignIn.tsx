import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState, type FormEvent } from "react";
import { api, ok } from "../api/client";
import { session } from "../api/queries";
import { Button, Field, Input } from "../design";
import { Logo } from "./Logo";
import css from "./SignIn.module.css";

export function SignIn() {
  const client = useQueryClient();
  const [token, setToken] = useState("");
  const signIn = useMutation({
    mutationFn: () => ok(api.POST("/api/session", { body: { token: token.trim() } })),
    onSuccess: () => client.resetQueries({ queryKey: session.queryKey }),
  });
  useEffect(() => {
    document.title = "Sign in · Stepdown";
  }, []);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (token.trim()) signIn.mutate();
  }

  return (
    <main className={css.page}>
      <form className={css.card} onSubmit={submit}>
        <Logo size={36} />
        <div>
          <h1 className={css.title}>Sign in to Stepdown</h1>
          <p className="muted">
            Paste the admin token that <code>stepdown up</code> printed.
          </p>
        </div>
        <Field
          label="Admin token"
          error={signIn.error?.message}
          hint={
            <>
              It also lies in <code>.stepdown/secrets/admin.token</code>.
            </>
          }
        >
          {(id, described) => (
            <Input
              id={id}
              type="password"
              autoFocus
              autoComplete="current-password"
              aria-describedby={described}
              aria-invalid={signIn.isError}
              value={token}
              onChange={(event) => setToken(event.target.value)}
            />
          )}
        </Field>
        <Button type="submit" kind="primary" busy={signIn.isPending} disabled={!token.trim()}>
          Sign in
        </Button>
      </form>
    </main>
  );
}
