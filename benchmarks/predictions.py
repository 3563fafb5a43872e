"""Keep what runs of predict.labelled came to as the table that `attnscope predict` quotes.

    attnscope run predict.labelled --sets sst2 "ag_news[World,Business]" sets/tweets ... --out RUN
    python benchmarks/predictions.py RUN [RUN ...]

Of a set and model that several runs hold, the run named last counts; what no run holds stays as it
was kept. The sets of docs/predict.md are from `attnscope data` and from
benchmarks/packaged_texts.py.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import attnscope
from attnscope.catalogue import of_tree
from attnscope.prediction import calibration
from attnscope.prediction.calibration import KEPT, Held
from attnscope.studies.predict import Labelled
from attnscope.studies.predict.labelled.sets import role
from attnscope.trajectory import final


def held(path: str) -> list[Held]:
    tree = attnscope.open_run(path)
    study = of_tree(tree)
    assert isinstance(study, Labelled)
    run, found = study.read(tree), []
    start = "random" if study.glove == "none" else "GloVe"
    for at, case in enumerate(study.cases):
        name, agreed = study.sets[at % len(study.sets)], run.of(case).theory.agreement.mean("seed")

        def of(predictor: str, measure: str = "top 5 %", agreed=agreed) -> float:
            return round(float(agreed.sel(predictor=predictor, measure=measure)), 1)

        found.append(
            Held(
                name=case.rsplit(", ", 1)[0],
                role=role(name),
                start=start,
                model=case.rsplit(", ", 1)[1],
                predicted=of("chosen"),
                top1=of("chosen", "first"),
                second_seed=of("another seed"),
                second_top1=of("another seed", "first"),
                chance=of("chance"),
                rarity=of("rarity"),
                shuffled=of("shuffled labels"),
                accuracy=round(100 * float(final(run.of(case).accuracy).mean()), 1),
                texts=int((run.data.ids.isel(set=at % len(study.sets))[:, 0] >= 0).sum()),
                seeds=study.seeds,
            )
        )
    return found


def main() -> None:
    found = [*calibration.kept(), *(h for path in sys.argv[1:] for h in held(path))]
    rows = {(h.name, h.model, h.start): h for h in found}
    lines = ",\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows.values())
    target = Path(calibration.__file__).with_name(KEPT)
    target.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(rows)} rows in {target.name}")


if __name__ == "__main__":
    main()
