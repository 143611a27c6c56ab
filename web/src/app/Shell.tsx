// Owns the frame of every page: navigation, project, theme, signing out.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import {
  Activity,
  CircleGauge,
  GraduationCap,
  KeyRound,
  ListTree,
  LogOut,
  Monitor,
  Moon,
  Route as RouteIcon,
  Sun,
  Wallet,
} from "lucide-react";
import { useEffect, useState, type ReactNode } from "react";
import { Navigate, NavLink, Outlet, useNavigate } from "react-router";
import { api, ok } from "../api/client";
import { health, isActive, projects, session } from "../api/queries";
import { Button, EmptyState, Failure, Loading, Note, Segmented, Select } from "../design";
import { setTheme, useTheme } from "../lib/theme";
import { CreateProject } from "./CreateProject";
import { Logo } from "./Logo";
import { rememberedProject, rememberProject, useProject } from "./project";
import css from "./Shell.module.css";

/** Leads to the project that was open last, else to the newest. */
export function Home() {
  const { data, error } = useQuery(projects);
  const [adding, setAdding] = useState(false);
  if (error) return <Failure error={error} />;
  if (!data) return <Loading what="projects" />;
  const kept = data.find((project) => project.id === rememberedProject()) ?? data.at(-1);
  if (kept) return <Navigate to={`/p/${kept.id}`} replace />;
  return (
    <main style={{ marginTop: "14vh" }}>
      <EmptyState
        icon={<Logo />}
        title="No project yet"
        action={
          <Button kind="primary" onClick={() => setAdding(true)}>
            Make a project
          </Button>
        }
      >
        A project holds an app’s keys, calls, tasks and students, apart from all others.
      </EmptyState>
      {adding && <CreateProject onClose={() => setAdding(false)} />}
    </main>
  );
}

const NEW = "new";

export function Shell() {
  const project = useProject();
  const { data: all } = useQuery(projects);
  const navigate = useNavigate();
  const [adding, setAdding] = useState(false);
  useEffect(() => rememberProject(project.id), [project.id]);

  if (all && !all.some((one) => one.id === project.id)) return <Navigate to="/" replace />;
  return (
    <div className={css.shell}>
      <a className={css.skip} href="#main">
        Skip to content
      </a>
      <aside className={css.side}>
        <div className={css.brand}>
          <Logo /> Stepdown
        </div>
        <Select
          aria-label="Project"
          className={css.project}
          value={project.id}
          onChange={(event) =>
            event.target.value === NEW ? setAdding(true) : void navigate(`/p/${event.target.value}`)
          }
          options={[
            ...(all ?? []).map((one) => ({ value: one.id, label: one.name })),
            { value: NEW, label: "New project…" },
          ]}
        />
        <Navigation />
        <div className={css.foot}>
          <ThemeChoice />
          <SignOut />
        </div>
      </aside>
      <main id="main" className={css.main} tabIndex={-1}>
        <Problems />
        <Outlet />
      </main>
      {adding && <CreateProject onClose={() => setAdding(false)} />}
    </div>
  );
}

/** What is wrong with the gateway, on every page: a call that is not captured is not seen on any of them. */
function Problems() {
  const { data } = useQuery(health);
  if (!data?.problems.length) return null;
  return (
    <div className={css.problems} role="alert">
      {data.problems.map((problem) => (
        <Note key={problem} tone="bad">
          {problem}
        </Note>
      ))}
    </div>
  );
}

function Navigation() {
  const { q, to } = useProject();
  const { data: runs } = useQuery(q.runs());
  const active = runs?.filter(isActive).length ?? 0;
  return (
    <nav className={css.nav} aria-label="Main">
      <Item to={to()} icon={<CircleGauge size={16} />} end>
        Overview
      </Item>
      <Item to={to("calls")} icon={<Activity size={16} />}>
        Calls
      </Item>
      <Item to={to("tasks")} icon={<ListTree size={16} />}>
        Tasks
      </Item>
      <Item to={to("runs")} icon={<GraduationCap size={16} />} mark={active ? `${active}` : undefined}>
        Runs
      </Item>
      <Item to={to("routes")} icon={<RouteIcon size={16} />}>
        Routes
      </Item>
      <Item to={to("usage")} icon={<Wallet size={16} />}>
        Usage
      </Item>
      <Item to={to("access")} icon={<KeyRound size={16} />}>
        Keys &amp; upstreams
      </Item>
    </nav>
  );
}

function Item({
  to,
  icon,
  end,
  mark,
  children,
}: {
  to: string;
  icon: ReactNode;
  end?: boolean;
  mark?: string;
  children: ReactNode;
}) {
  return (
    <NavLink to={to} end={end} className={({ isActive: here }) => `${css.item} ${here ? css.here : ""}`}>
      {icon}
      <span>{children}</span>
      {mark && (
        <span className={css.mark} title={`${mark} under way`}>
          {mark}
        </span>
      )}
    </NavLink>
  );
}

function ThemeChoice() {
  const theme = useTheme();
  return (
    <Segmented
      label="Colours"
      value={theme}
      onChange={setTheme}
      options={[
        { value: "system", label: <Monitor size={14} />, title: "As the system" },
        { value: "light", label: <Sun size={14} />, title: "Light" },
        { value: "dark", label: <Moon size={14} />, title: "Dark" },
      ]}
    />
  );
}

function SignOut() {
  const client = useQueryClient();
  const out = useMutation({
    mutationFn: () => ok(api.DELETE("/api/session")),
    onSuccess: async () => {
      await client.resetQueries({ queryKey: session.queryKey });
      client.removeQueries({ predicate: (query) => query.queryKey[0] !== session.queryKey[0] });
    },
  });
  return (
    <Button
      kind="ghost"
      size="sm"
      title="Sign out"
      aria-label="Sign out"
      icon={<LogOut size={15} />}
      onClick={() => out.mutate()}
    />
  );
}
