"""`python -m gateway.supervisor`: what `stepdown up --detach` leaves running."""

from gateway.core.errors import StepdownError
from gateway.core.settings import settings
from gateway.supervisor.run import claimed, supervise


def main() -> int:
    home = settings().root
    try:
        with claimed(home):
            return supervise(home)
    except StepdownError as error:
        print(error, flush=True)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
