"""Commands on what a run left behind: ask it, probe it in every way, try to get the facts back, report."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict

from adapop.cli import printing
from adapop.errors import AdaPopError, ConfigError
from adapop.facts.fact import FACT_GROUPS, TIERS, Fact, FactSet
from adapop.probes.matrix import Cell, leak_matrix
from adapop.probes.plan import Plan
from adapop.probes.prompts import KINDS, NotApplicable, ProbeRow
from adapop.probes.recovery.choice import RECOVERY, recover, recovered
from adapop.probes.verdict import verdicts
from adapop.progress import Progress
from adapop.runs.run import Run, find_run

ALL = "all"


def probe(options: argparse.Namespace) -> int | None:
    """`probe`: some prompts to both models; with --kinds or --recovery, all of them, kept in the run's folder; with
    --capability, standard tasks, printed only."""
    run = find_run(options.run)
    status = 0
    if options.kinds or options.recovery:
        status = _probed(run, options)
    elif not options.capability:
        return _asked(run, options)
    if status == 0 and options.capability:
        _capability(run, options)
    return status


def report(options: argparse.Namespace) -> None:
    """`report`: one run or several as a page that opens offline, or one as an archive."""
    from adapop.report import write_archive, write_report

    runs = [find_run(name) for name in options.runs]
    if options.out.suffix == ".zip":
        if len(runs) > 1:
            raise ConfigError("An archive holds one run.", "Name one run, or write an .html report of several.")
        print(write_archive(runs[0], options.out))
    else:
        print(write_report(runs, options.out))


def _asked(run: Run, options: argparse.Namespace) -> None:
    from adapop.probes.ask import ask
    from adapop.runs.execute import load_model

    facts = run.facts
    if options.prompt is not None:
        prompts, golds = [options.prompt], [options.gold]
    else:
        chosen = _chosen(facts, options.facts)
        prompts = [question for fact in chosen for question in (fact.question, *fact.paraphrases)]
        golds = [fact.answer for fact in chosen for _ in (fact.question, *fact.paraphrases)]
    for asked in ask(load_model(run), prompts, golds, run.config.max_new_tokens):
        print(json.dumps(asdict(asked), ensure_ascii=False) if options.json else printing.asked_text(asked) + "\n")


def _probed(run: Run, options: argparse.Namespace) -> int:
    """Probes and keeps what was found, also what was found before Ctrl-C or a fault."""
    from adapop.probes.battery import battery
    from adapop.runs.execute import load_model

    model = load_model(run)
    progress = Progress(printing.progress_line)
    found: list[ProbeRow | NotApplicable] = []
    status = 0
    if options.kinds:
        kinds = KINDS if options.kinds == ALL else tuple(kind.strip() for kind in options.kinds.split(","))
        plan = Plan(kinds, per_tier=options.per_tier, cosine=options.cosine, max_new_tokens=run.config.max_new_tokens)
        try:
            for row in battery(model, run.facts, plan, progress):
                found.append(row)
        except (AdaPopError, KeyboardInterrupt) as error:
            if not found:
                raise
            status = 130 if isinstance(error, KeyboardInterrupt) else 2
            print(f"\nerror: {error or 'interrupted'}", file=sys.stderr)
        run.save_probes(found)
    if status == 0 and options.recovery:
        names = RECOVERY if options.recovery == ALL else options.recovery.split(",")
        for name in names:
            run.save_recovery(name, recover(name, model, run.facts, run.config.max_new_tokens, progress))
    printing.progress_line("")
    _print_found(run, options.json)
    return status


def _capability(run: Run, options: argparse.Namespace) -> None:
    from adapop.probes.capability import capability
    from adapop.runs.execute import load_model

    tasks = [task.strip() for task in options.capability.split(",")]
    found = capability(load_model(run), tasks, options.limit)
    if options.json:
        for row in found:
            content = {"row": "capability", **asdict(row), "difference": row.difference}
            print(json.dumps(content, ensure_ascii=False, allow_nan=False))
        return
    print(f"{'task':<12}{'metric':<10}{'questions':>9}{'original':>18}{'unlearned':>18}{'difference':>12}")
    for row in found:
        original = _with_error(row.original, row.original_stderr)
        unlearned = _with_error(row.unlearned, row.unlearned_stderr)
        print(f"{row.task:<12}{row.metric:<10}{row.questions:>9,}{original:>18}{unlearned:>18}{row.difference:>+12.3f}")


def _print_found(run: Run, as_json: bool) -> None:
    rows, recovery = run.probes() or [], run.recovery()
    if as_json:
        for row in rows:
            kind = "not_applicable" if isinstance(row, NotApplicable) else "probe"
            print(json.dumps({"row": kind, **asdict(row)}, ensure_ascii=False))
        for name, result in recovery.items():
            print(json.dumps({"row": "recovery", "probe": name, **result}, ensure_ascii=False))
        return
    print("\n".join(matrix_lines(rows, recovery)))
    for name, result in recovery.items():
        print(f"\n{name}, all tiers ({result['seconds']:.1f} s)")
        for row in result["rows"]:
            if row["tier"] == ALL:
                print("  " + "  ".join(f"{key} {_short(value)}" for key, value in row.items() if key != "tier"))


def matrix_lines(rows: Iterable[ProbeRow | NotApplicable], recovery: Mapping[str, Mapping]) -> list[str]:
    """The leak matrix as a table: recall of the unlearned model by group, kind and tier, then the verdicts."""
    rows = list(rows)
    matrix = leak_matrix(rows)
    lines = [f"{'recall, unlearned (original)':<40}" + "".join(f"{tier:>16}" for tier in (*TIERS, ALL))]
    for group in FACT_GROUPS:
        for kind in KINDS:
            cells = [matrix.cell(group, tier, kind) for tier in (*TIERS, ALL)]
            if any(cells):
                lines.append(f"{f'{group}, {kind}':<40}" + "".join(f"{_cell(cell):>16}" for cell in cells))
    words = {fact: verdict.name for fact, verdict in verdicts(rows, recovered(recovery)).items()}
    for group in FACT_GROUPS:
        for tier, counts in matrix.verdicts_by_tier(words, group).items():
            named = ", ".join(f"{count} {word.lower()}" for word, count in counts.most_common())
            lines.append(f"{group}, {tier}: {named}")
    lines += [f"not asked, {left.kind}: {left.facts} facts, {left.reason}" for left in matrix.not_asked]
    return lines


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    shown = f"{cell.unlearned.recall.mean:.2f} ({cell.original.recall.mean:.2f})"
    return shown if cell.measurable else f"[{shown}]"


def _short(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _with_error(share: float, stderr: float | None) -> str:
    return f"{share:.3f}" if stderr is None else f"{share:.3f} ± {stderr:.3f}"


def _chosen(facts: FactSet, ids: str | None) -> list[Fact]:
    """The facts of the given ids, or eight forget facts from rare to famous."""
    every = {fact.id: fact for group in (facts.forget, facts.retain, facts.holdout) for fact in group}
    if ids is None:
        one_each = list({fact.score: fact for fact in sorted(facts.forget, key=lambda f: f.score or 0)}.values())
        return one_each[:: max(1, len(one_each) // 8)][:8]
    wanted = [name.strip() for name in ids.split(",")]
    if missing := [name for name in wanted if name not in every]:
        raise ConfigError(f"No fact has the id {missing[0]!r}.", "`python -m adapop beta FACTS --json` lists the ids.")
    return [every[name] for name in wanted]
