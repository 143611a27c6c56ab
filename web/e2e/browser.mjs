// Owns starting the Chromium that comes as an npm package. It unpacks into TMPDIR: give it a private one.
import chromium from "@sparticuz/chromium";
import { chromium as playwright } from "playwright-core";

/** A browser; what its pages complain about is collected in `complaints`. */
export async function launch() {
  const browser = await playwright.launch({
    executablePath: await chromium.executablePath(),
    // Not the package's own arguments: they switch off web security, which is part of what is tested.
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
    ],
    headless: true,
  });
  const complaints = [];
  async function open(options = {}) {
    const context = await browser.newContext({
      viewport: { width: 1440, height: 900 },
      locale: "en-GB",
      ...options,
    });
    const page = await context.newPage();
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning")
        complaints.push(message.text().slice(0, 400));
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    return page;
  }
  return { open, complaints, close: () => browser.close() };
}

export async function signIn(page, url, token) {
  await page.goto(url);
  await page.getByLabel("Admin token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
}
