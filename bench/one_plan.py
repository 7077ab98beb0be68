"""One plan over a file of columns in a process of its own: what a cold plan over a long list is.

python bench/one_plan.py FILE WORKLOAD [ROWS]
"""

import sys
from datetime import date

from rackrate.app.long_lists import context_over
from rackrate.app.planning import plan_over

NEWEST = date(2026, 11, 30)


def main(path: str, workload: str, limit: str = "20") -> None:
    """Plan and print the best offers."""
    answer = plan_over(context_over(path, NEWEST), workload, limit=int(limit))
    for plan in answer.plans:
        print(plan.provider, plan.offer, plan.cost.likely, plan.cost.currency)
    print(f"{answer.considered} offers, {len(answer.plans) + answer.more_plans} possible")
    for group in answer.rejected:
        print(group.reason, group.count)


if __name__ == "__main__":
    main(*sys.argv[1:])
