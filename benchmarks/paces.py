"""Keep when attention came in runs of predict.when and predict.labelled, said and measured.

    attnscope run predict.when --sets sst2 "ag_news[World,Business]" sets/tweets ... --out RUN
    attnscope run predict.labelled --sets ... --out RUN2
    python benchmarks/paces.py RUN RUN2 [RUN ...]

Factors are fitted on the sets by which the predictor was chosen; on others they are judged, unless
a run is named as RUN=ROLE, such as "RUN=looked at before". Of a set, model and optimizer that
several runs hold, the run named last counts.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import attnscope
from attnscope.catalogue import of_tree
from attnscope.prediction import pace
from attnscope.prediction.pace import KEPT, MOMENTS, PLANS, Timed
from attnscope.studies.predict import Labelled, When
from attnscope.studies.predict._timing import SHUFFLED_SYSTEM, SYSTEM, TELLERS
from attnscope.studies.predict.labelled.sets import short


def kept(named: str) -> list[Timed]:
    path, _, role = named.partition("=")
    tree = attnscope.open_run(path)
    study = of_tree(tree)
    assert isinstance(study, Labelled | When)
    found, both = [], study.timed(study.read(tree)).assign_coords(case=list(study.cases))
    for one in study.trained:
        if one.plan not in PLANS:
            raise SystemExit(f"{path}: {one.plan} is not one of the trainings that are kept.")
        told = both.told.sel(case=one.case).to_numpy()
        came = both.came.sel(case=one.case).transpose("moment", "seed").to_numpy()

        def said(who: str, told=told) -> dict:
            values = told[TELLERS.index(who)]
            return {m: round(float(v), 1) for m, v in zip(MOMENTS, values, strict=True)}

        seen = {
            m: tuple(round(float(v), 1) for v in row) for m, row in zip(MOMENTS, came, strict=True)
        }
        found.append(
            Timed(
                short(one.name),
                role or one.role,
                one.plan.model,
                one.plan.optimizer,
                said(SYSTEM),
                said(SHUFFLED_SYSTEM),
                seen,
            )
        )
    return found


def main() -> None:
    rows = {
        (row.name, row.model, row.optimizer): row for path in sys.argv[1:] for row in kept(path)
    }
    lines = ",\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows.values())
    target = Path(pace.__file__).with_name(KEPT)
    target.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(rows)} rows in {target.name}")


if __name__ == "__main__":
    main()
