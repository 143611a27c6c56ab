// Owns whether the visitor may see anything: the pages, or the sign-in form.
import { useQuery } from "@tanstack/react-query";
import { Outlet } from "react-router";
import { ApiError } from "../api/client";
import { me } from "../api/queries";
import { Failure, Loading } from "../design";
import { SignIn } from "./SignIn";

export function Gate() {
  const { data, error, isPending } = useQuery(me);
  if (data) return <Outlet />;
  if (isPending) return <Loading what="Stepdown" />;
  if (error instanceof ApiError && error.status === 401) return <SignIn />;
  return (
    <div style={{ maxWidth: 640, margin: "20vh auto", padding: 16 }}>
      <Failure error={error} />
    </div>
  );
}
