// Drives the dashboard as its user would: node e2e/dashboard.mjs URL TOKEN
// Before it looks for something new it prints `want NAME` and waits for a line on stdin: the test makes it happen.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { launch, signIn } from "./browser.mjs";

const [url, token] = process.argv.slice(2);
const replies = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function want(name) {
  console.log(`want ${name}`);
  await replies.next();
}

const browser = await launch();
const page = await browser.open({ colorScheme: "light" });
page.setDefaultTimeout(20_000);
const go = (name) => page.getByRole("navigation", { name: "Main" }).getByRole("link", { name }).click();
const heading = (name) => page.getByRole("heading", { level: 1, name }).waitFor();
const done = (what) => console.log(`ok ${what}`);

try {
  await page.goto(url);
  await page.getByLabel("Admin token").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").filter({ hasText: "not the admin token" }).waitFor();
  done("a wrong token is refused in words");

  await signIn(page, url, token);
  await heading("Overview");
  assert.deepEqual(
    (await page.context().cookies()).map((cookie) => [cookie.httpOnly, cookie.sameSite]),
    [[true, "Strict"]],
  );
  done("the right token opens the overview");

  await page.getByRole("alert").filter({ hasText: "The writer does not run" }).waitFor();
  done("every page says what is wrong with the gateway");

  await go("Calls");
  await page.getByText("live", { exact: true }).waitFor();
  await want("call");
  await page.getByRole("button", { name: /Is this one seen live\?/ }).click();
  const drawer = page.getByRole("dialog");
  await drawer.getByText('"delivery_delay"').waitFor();
  await page.keyboard.press("Escape");
  await drawer.waitFor({ state: "detached" });
  done("a call appears live and opens");

  await page.getByRole("button", { name: /Is this one seen live\?/ }).click();
  await drawer.getByText('"delivery_delay"').waitFor();
  await page.evaluate(() => {
    // Typed in the very moment in which the drawer closes.
    document.querySelector("dialog").close();
    const box = document.querySelector("input[type=search]");
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(
      box,
      "no such text anywhere",
    );
    box.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await page.waitForURL((at) => at.searchParams.has("q") && !at.searchParams.has("call"));
  await page.getByText("No call fits these filters").waitFor();
  done("filters narrow the list");

  await go("Runs");
  await page
    .getByRole("row", { name: /running/ })
    .getByRole("link")
    .click();
  await page.getByRole("figure", { name: "Reward" }).waitFor();
  for (const name of ["Margin", "Loss", "Groups", "Length", "Mismatch"])
    assert.equal(await page.getByRole("figure", { name }).locator("canvas").count(), 1, name);
  await page.getByText("12 / 30 steps").waitFor();
  await want("step");
  await page.getByText("13 / 30 steps").waitFor();
  await page.getByRole("figure", { name: "Reward" }).getByText("step 13").waitFor();
  done("a run shows its curves and the next step");

  await page.getByRole("tab", { name: "Rollouts" }).click();
  await page.getByRole("heading", { name: "Completions" }).waitFor();
  await page.getByText("teacher", { exact: true }).waitFor();
  done("rollouts show with the anchor marked");

  await page.getByRole("tab", { name: "Tokens" }).click();
  const answer = page.locator("ins").first();
  await answer.getByText("<|im_end|>").waitFor();
  assert.match(await answer.innerText(), /^{"category"/);
  const style = await answer
    .locator("span")
    .first()
    .evaluate((node) => getComputedStyle(node).textDecorationLine);
  assert.equal(style, "underline", "colour alone tells nothing to some");
  assert.equal(await answer.locator("span").nth(1).getAttribute("title"), "id 501, log-prob -0.02");
  done("the trained tokens are marked");

  await go("Runs");
  await page
    .getByRole("row", { name: /succeeded/ })
    .getByRole("link")
    .click();
  await page.getByRole("img", { name: /^GRPO: win rate over the teacher/ }).waitFor();
  await page.getByRole("tab", { name: "Curves" }).click();
  await page
    .getByRole("table", { name: "Drift" })
    .getByRole("row", { name: /GRPO.*0.21 %.*22 %.*0.03 nats.*0.05 nats/ })
    .waitFor();
  done("drift shows, phase beside phase");
  await page.getByRole("tab", { name: "Evaluation" }).click();
  await page.getByRole("link", { name: "Browse outputs" }).click();
  await page.getByText("judged better").first().waitFor();
  done("evidence shows with intervals and outputs");

  await go("Routes");
  const row = page.getByRole("row", { name: /Support tickets/ });
  await row.getByText("observe", { exact: true }).waitFor();
  await row.getByRole("button", { name: "Change" }).click();
  await page.getByRole("button", { name: "live", exact: true }).click();
  await page.getByRole("button", { name: "Put in force" }).click();
  await row.getByText("live", { exact: true }).waitFor();
  await want("live");
  done("a route is switched to the student");

  await row.getByRole("button", { name: "Roll back" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
  await row.getByText("observe", { exact: true }).waitFor();
  await want("observe");
  done("and back");

  await row.getByRole("button", { name: "Fallbacks" }).click();
  await page.getByRole("button", { name: "Add a fallback" }).click();
  await page.getByLabel("Model name there").fill("gpt-mini");
  await page.getByRole("button", { name: "Put in force" }).click();
  await row.getByText("gpt-mini").waitFor();
  done("a fallback is set");

  await go("Tasks");
  await page.getByRole("link", { name: /Support tickets/ }).click();
  await page.getByRole("button", { name: "Start run" }).click();
  const form = page.getByRole("dialog", { name: "Start a run" });
  await form.getByRole("button", { name: "Quick" }).click();
  await form.getByRole("button", { name: "Start run" }).click();
  await page.getByText("queued", { exact: true }).waitFor();
  await page.getByText("0 / 15 steps").waitFor();
  await want("run");
  done("a run is started");

  for (const name of ["Tasks", "Usage", "Keys & upstreams"]) {
    await go(name);
    await heading(name);
    await page.getByRole("table").first().waitFor();
  }
  done("the other pages show");

  await page.setViewportSize({ width: 390, height: 844 });
  for (const name of ["Overview", "Calls", "Tasks", "Runs", "Routes", "Usage", "Keys & upstreams"]) {
    await go(name);
    await heading(name);
    await page.getByRole("table").first().waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${name} is ${width} px wide on a phone`);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  done("no page is wider than a phone");

  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.getByRole("button", { name: "Dark" }).click();
  assert.notEqual(await paper(), light);
  done("dark is another colour");

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Admin token").waitFor();
  await page.reload();
  await page.getByLabel("Admin token").waitFor();
  done("signing out ends it");

  const unexpected = browser.complaints.filter((text) => !text.includes("401 (Unauthorized)"));
  assert.deepEqual(unexpected, []);
  assert.equal(browser.complaints.length, 1, "the one 401 is the wrong token's");
  done("no page complained");
} catch (error) {
  console.log(`on ${page.url()}\n${await page.locator("body").innerText()}`);
  console.log(browser.complaints.join("\n"));
  throw error;
} finally {
  await browser.close();
}
process.exit(0);
