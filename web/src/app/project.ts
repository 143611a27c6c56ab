// Owns which project a page is about, its queries and the addresses of its pages.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useParams } from "react-router";
import { of, projects } from "../api/queries";

const KEY = "stepdown.project";

export function rememberProject(id: string): void {
  localStorage.setItem(KEY, id);
}

export function rememberedProject(): string | null {
  return localStorage.getItem(KEY);
}

export function useProjectId(): string {
  const { projectId } = useParams();
  if (!projectId) throw new Error("This page belongs to a project.");
  return projectId;
}

export function useProject() {
  const id = useProjectId();
  const { data } = useQuery(projects);
  return useMemo(
    () => ({
      id,
      name: data?.find((project) => project.id === id)?.name ?? "",
      q: of(id),
      to: (path = "") => `/p/${id}${path ? `/${path}` : ""}`,
    }),
    [id, data],
  );
}
