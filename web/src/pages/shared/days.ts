// Owns the days of a chart's axis, in seconds since 1970, UTC.

const DAY = 86_400;
const FEWEST = 14;

/** Up to `most` days ending with `last`, without the empty ones before `first`, but two weeks at least. */
export function daysUpTo(last: number, most: number, first: number): number[] {
  const wanted = Number.isFinite(first) ? (last - first) / DAY + 1 : FEWEST;
  const length = Math.min(most, Math.max(FEWEST, Math.round(wanted)));
  return Array.from({ length }, (_, place) => last - (length - 1 - place) * DAY);
}
