// Owns the choice of light or dark: the system's, or the user's own, kept in this browser.
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const KEY = "stepdown.theme";
const listeners = new Set<() => void>();
const system = window.matchMedia("(prefers-color-scheme: dark)");
system.addEventListener("change", () => listeners.forEach((tell) => tell()));

function chosen(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function applyTheme(): void {
  const theme = chosen();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function setTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme();
  listeners.forEach((tell) => tell());
}

function subscribe(tell: () => void): () => void {
  listeners.add(tell);
  return () => listeners.delete(tell);
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, chosen);
}

/** What is shown now. Canvas charts redraw when it changes. */
export function useShownTheme(): "light" | "dark" {
  return useSyncExternalStore(subscribe, () => {
    const theme = chosen();
    return theme === "system" ? (system.matches ? "dark" : "light") : theme;
  });
}
