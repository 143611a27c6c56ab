// Takes a picture of every page in light and dark: node e2e/shots.mjs URL TOKEN FOLDER
import { mkdirSync } from "node:fs";
import { launch, signIn } from "./browser.mjs";

const [url, token, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await launch();

for (const colorScheme of ["light", "dark"]) {
  const page = await browser.open({ colorScheme });
  const shot = (name, fullPage = true) =>
    page.screenshot({ path: `${folder}/${name}-${colorScheme}.png`, fullPage });
  const settle = () => page.waitForTimeout(900);
  await page.goto(url);
  await page.getByLabel("Admin token").waitFor();
  await shot("sign-in");
  await signIn(page, url, token);
  const base = page.url();
  const visit = async (path, name) => {
    await page.goto(`${base}/${path}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await settle();
    await shot(name);
  };
  const open = async (button, name) => {
    await button.click();
    await page.getByRole("dialog").waitFor();
    await settle();
    await shot(name, false);
    await page.keyboard.press("Escape");
  };

  await visit("", "overview");
  await visit("calls", "calls");
  await open(page.locator("tbody button").first(), "call");
  await visit("tasks", "tasks");
  await page
    .getByRole("link", { name: /Support tickets/ })
    .first()
    .click();
  await page.getByRole("button", { name: "Start run" }).waitFor();
  await settle();
  await shot("task");
  await open(page.getByRole("button", { name: "Start run" }), "start-run");
  await visit("runs", "runs");
  const links = await page
    .locator("tbody a")
    .evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  for (const [name, href] of [
    ["run-running", links[0]],
    ["run-finished", `${links[1]}?tab=curves`],
    ["run-rollouts", `${links[1]}?tab=rollouts`],
    ["run-tokens", `${links[1]}?tab=tokens`],
    ["run-evaluation", `${links[1]}?tab=evaluation`],
    ["run-events", `${links[1]}?tab=events`],
    ["run-configuration", `${links[1]}?tab=configuration`],
    ["outputs", `${links[1]}/outputs`],
  ])
    await visit(href.replace(new URL(base).pathname, "").slice(1), name);
  await visit("routes", "routes");
  await open(page.getByRole("button", { name: "Change" }).first(), "change-route");
  await open(page.getByRole("button", { name: "History" }).first(), "history");
  await visit("usage", "usage");
  await visit("access", "access");
  await open(page.getByRole("button", { name: "Add upstream" }), "upstream-form");
}
await browser.close();
if (browser.complaints.length) console.error([...new Set(browser.complaints)].join("\n"));
