import { percent } from "../../lib/format";
import css from "./ShareBar.module.css";

/** How the calls divide between student and upstream. */
export function ShareBar({ share }: { share: number }) {
  return (
    <span className={css.row}>
      <span className={css.bar} role="img" aria-label={`student answers ${percent(share)}`}>
        <span className={css.student} style={{ width: `${share * 100}%` }} />
      </span>
      <span className={css.text}>{percent(share)} student</span>
    </span>
  );
}
