// Owns how numbers, money and times are written. Every number with a unit; money from its exact text.

const whole = new Intl.NumberFormat("en-GB");
const compact = new Intl.NumberFormat("en-GB", { notation: "compact", maximumFractionDigits: 1 });

export const NONE = "–";

export function count(value: number): string {
  return whole.format(value);
}

export function short(value: number): string {
  return value < 10_000 ? whole.format(Math.round(value)) : compact.format(value);
}

/** USD from the API's decimal text. Small amounts keep enough digits to differ from nothing. */
export function usd(amount: string | number | null | undefined): string {
  if (amount === null || amount === undefined) return NONE;
  const value = Number(amount);
  if (value === 0) return "$0";
  const size = Math.abs(value);
  const digits = size >= 1 ? 2 : size >= 0.01 ? 3 : Math.min(10, 1 - Math.floor(Math.log10(size)));
  const text = value.toFixed(digits);
  return `$${size >= 1000 ? whole.format(Math.round(value)) : size < 1 ? text.replace(/0+$/, "") : text}`;
}

export function ms(value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  if (value < 10) return `${trimmed(value.toFixed(1))} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  return `${(value / 1000).toFixed(value < 10_000 ? 2 : 1)} s`;
}

export function seconds(value: number): string {
  if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 60) return `${minutes} min ${String(Math.round(value % 60)).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

export function percent(share: number | null | undefined, digits = 0): string {
  return share === null || share === undefined ? NONE : `${(share * 100).toFixed(digits)} %`;
}

/** A metric whose size is not known beforehand: three significant digits. */
export function metric(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE;
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 100_000)) return value.toExponential(1);
  if (size >= 100) return value.toFixed(0);
  return trimmed(size >= 10 ? value.toFixed(1) : value.toFixed(size >= 1 ? 2 : 3));
}

/** Without the zeros that say nothing: 0.500 is 0.5. */
function trimmed(digits: string): string {
  return digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function clock(iso: string): string {
  const moment = new Date(iso);
  const time = moment.toLocaleTimeString("en-GB");
  return moment.toDateString() === new Date().toDateString() ? time : `${day(iso)} ${time}`;
}

export function day(iso: string): string {
  return new Date(iso).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

export function full(iso: string): string {
  return new Date(iso).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

export function ago(iso: string | null | undefined): string {
  if (!iso) return "never";
  const passed = Math.max(0, (Date.now() - new Date(iso).getTime()) / 1000);
  if (passed < 5) return "just now";
  if (passed < 60) return `${Math.floor(passed)} s ago`;
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86_400) return `${Math.floor(passed / 3600)} h ago`;
  return `${Math.floor(passed / 86_400)} d ago`;
}

export function shortId(id: string): string {
  // The end of a UUIDv7 is its random part: ids made together differ there.
  return id.slice(-8);
}
