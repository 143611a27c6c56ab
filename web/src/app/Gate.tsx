// Owns whether the visitor may see anything: the pages, or the sign-in form.
import { useQuery } from "@tanstack/react-query";
import { Outlet } from "react-router";
import { session } from "../api/queries";
import { Failure, Loading } from "../design";
import { SignIn } from "./SignIn";

export function Gate() {
  const { data, error, isPending } = useQuery(session);
  if (data) return data.signed_in ? <Outlet /> : <SignIn />;
  if (isPending) return <Loading what="Stepdown" />;
  return (
    <div style={{ maxWidth: 640, margin: "20vh auto", padding: 16 }}>
      <Failure error={error} />
    </div>
  );
}
