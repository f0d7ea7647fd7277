"""`reword`: other ways to ask each fact, written by the judge, for sets that bring none."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from adapop import console
from adapop.cache import Cache
from adapop.cli.notes import print_notes
from adapop.cli.scores import chosen_judge, facts_of
from adapop.errors import AdaPopError
from adapop.popularity.base import given
from adapop.popularity.scoredfile import check_place, write_scored
from adapop.probes.paraphrase import written
from adapop.probes.prompts import NotApplicable
from adapop.progress import Progress


def reword(options: argparse.Namespace) -> int:
    """Writes the set with two rewordings a fact, for the facts that have none. What is asked once is kept, so that it
    can be interrupted and started again."""
    check_place(options.out)
    progress = Progress(console.progress_line)
    facts = facts_of(options.facts, progress)
    print_notes(facts, False)
    judge = chosen_judge(options, progress)
    bare = [fact for fact in facts.forget if not fact.paraphrases]
    texts: dict[str, tuple[str, ...]] = {}
    failed, status = 0, 0
    try:
        for found in written(bare, judge.ask, judge.name, Cache(refresh=options.refresh)):
            if isinstance(found, NotApplicable):
                failed += 1
            else:
                texts[found.fact_id] = (*texts.get(found.fact_id, ()), found.text)
            progress.say(f"Reworded {len(texts):,} of {len(bare):,} facts")
    except (AdaPopError, KeyboardInterrupt) as error:
        status = 130 if isinstance(error, KeyboardInterrupt) else 2
        print(f"\nerror: {error or 'interrupted'}", file=sys.stderr)
    console.progress_line("")
    reworded = tuple(replace(fact, paraphrases=texts.get(fact.id, fact.paraphrases)) for fact in facts.forget)
    write_scored(replace(facts, forget=reworded), given(facts.forget).scores, options.out)
    print(
        f"{len(texts):,} of {len(bare):,} facts without rewordings have some now, {failed:,} got none that can be "
        f"used; written to {options.out}",
        file=sys.stderr,
    )
    return status
