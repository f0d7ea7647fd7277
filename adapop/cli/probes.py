"""Commands on a run's model: ask it, probe it in every form, recover facts, export, report."""

import argparse
from dataclasses import asdict

from adapop.cli import printing
from adapop.errors import AdaPopError, ConfigError
from adapop.facts.fact import Fact, FactSet
from adapop.probes.plan import Plan
from adapop.probes.prompting import FORM_OF_WAY
from adapop.probes.prompts import EVERY_KIND, NotApplicable, ProbeRow
from adapop.probes.recovery.choice import RECOVERY, recover
from adapop.progress import Progress
from adapop.report.card import gguf
from adapop.report.numbers import numbers_of
from adapop.report.record import read_record
from adapop.report.recovery import recovery_tables
from adapop.report.table import Table, deviating
from adapop.report.tables import probe_tables
from adapop.runs.run import Run, find_run

ALL = "all"
REPORTS = (".html", ".zip")


def probe(options: argparse.Namespace) -> int | None:
    """`probe`: asks both models some prompts. With --kinds or --recovery the results are saved in
    the run's folder; with --capability, standard tasks are only printed."""
    whole = options.kinds or options.recovery or options.capability
    if whole and (options.prompt or options.facts):
        fix = "Leave out --prompt and --facts, or --kinds, --recovery and --capability."
        message = "--prompt and --facts do not combine with --kinds, --recovery or --capability."
        raise ConfigError(message, fix)
    run = find_run(options.run)
    status = 0
    if options.kinds or options.recovery:
        status = _probed(run, options)
    elif not options.capability:
        return _ask(run, options)
    if status == 0 and options.capability:
        _capability(run, options)
    return status


def report(options: argparse.Namespace) -> None:
    """`report`: runs as a page that opens offline, or one as an archive; or the numbers of each as
    JSON. Raises ConfigError."""
    from adapop.report import write_archive, write_report

    runs = list({run.folder.resolve(): run for run in map(find_run, options.runs)}.values())
    if options.json:
        for run in runs:
            printing.say_json(asdict(numbers_of(run, options.redacted)))
        return
    kind = options.out.suffix.lower()
    if kind not in REPORTS:
        message = f"{options.out} is not a {' or '.join(REPORTS)} file."
        raise ConfigError(message, "Only these two can be written.")
    if kind == ".zip" and len(runs) > 1:
        fix = "Name one run, or write an .html report of several."
        raise ConfigError("An archive holds one run.", fix)
    how = {"redacted": options.redacted, "by": options.by}
    if kind == ".zip":
        progress = Progress(printing.overwritten)
        measure = not options.unmeasured
        out = write_archive(runs[0], options.out, options.title, progress, measure, **how)
        printing.overwritten("")
    else:
        out = write_report(runs, options.out, options.title, **how)
    printing.say(out)


def _ask(run: Run, options: argparse.Namespace) -> None:
    from adapop.probes.ask import ask, whole_reply
    from adapop.runs.execute import load_model

    facts = run.facts
    if options.prompt is not None:
        prompts, golds = [options.prompt], [options.gold]
    else:
        pairs = [
            (question, fact.answer)
            for fact in _chosen(facts, options.facts)
            for question in (fact.question, *fact.paraphrases)
        ]
        prompts, golds = map(list, zip(*pairs))
    model = load_model(run)
    limit = whole_reply(model, prompts, run.reply_tokens)
    for replies in ask(model, prompts, golds, limit, facts):
        if options.json:
            printing.say_json(asdict(replies))
        else:
            printing.say(printing.asked_text(replies), end="\n\n")


def _probed(run: Run, options: argparse.Namespace) -> int:
    """Probes and saves the results, even if Ctrl-C or an error ends it early."""
    from adapop.probes.battery import battery
    from adapop.runs.execute import load_model

    epoch, model = run.chosen_epoch, load_model(run)
    progress = Progress(printing.overwritten)
    rows: list[ProbeRow | NotApplicable] = []
    status = 0
    if options.kinds:
        names = [name.strip() for name in options.kinds.split(",")]
        kinds = tuple(FORM_OF_WAY.get(name, name) for name in names)
        limits = {"per_tier": options.per_tier, "max_new_tokens": run.reply_tokens}
        plan = Plan(EVERY_KIND if options.kinds == ALL else kinds, cosine=options.cosine, **limits)
        try:
            for row in battery(model, run.facts, plan, progress):
                rows.append(row)
        except (AdaPopError, KeyboardInterrupt) as error:
            if not rows:
                raise
            status = printing.ended_early(error)
        run.save_probes(rows, epoch)
    if status == 0 and options.recovery:
        chosen = map(str.strip, options.recovery.split(","))
        for name in RECOVERY if options.recovery == ALL else chosen:
            about = (model, run.facts, run.reply_tokens, progress, run.config.model)
            run.save_recovery(name, recover(name, *about), epoch)
    printing.overwritten("")
    _print_found(run, options.json)
    return status


def _capability(run: Run, options: argparse.Namespace) -> None:
    from adapop.probes.capability import capability
    from adapop.report.beside_paper import capability_beside
    from adapop.runs.execute import load_model

    tasks = [task.strip() for task in options.capability.split(",")]
    results = capability(load_model(run), tasks, options.limit)
    paper = {row.task: capability_beside(run.config, row.task) for row in results}
    if options.json:
        for row in results:
            content = {"row": "capability", **asdict(row), "difference": row.difference}
            printing.say_json(content | {"paper": paper[row.task]})
        return
    rows = []
    for row in results:
        before = deviating(row.original, row.original_stderr)
        after = deviating(row.unlearned, row.unlearned_stderr)
        printed = ("–" if share is None else f"{share:.2f}" for share in paper[row.task])
        cells = (before, after, f"{row.difference:+.3f}", " → ".join(printed))
        rows.append((row.task, row.metric, f"{row.questions:,}", *cells))
    head = ("task", "metric", "questions", "original", "unlearned", "difference", "paper")
    printing.say(Table("What else the model can do", head, tuple(rows)).as_text())


def _print_found(run: Run, as_json: bool) -> None:
    if as_json:
        for row in run.probes() or []:
            kind = "not_applicable" if isinstance(row, NotApplicable) else "probe"
            printing.say_json({"row": kind, **asdict(row)})
        for name, result in run.recovery().items():
            printing.say_json({"row": "recovery", "probe": name, **result})
        return
    record = read_record(run)
    for table in (*probe_tables(record), *recovery_tables(record.recovery)):
        printing.say(f"\n{table.as_text()}")


def _chosen(facts: FactSet, ids: str | None) -> list[Fact]:
    """The facts of these ids, or eight forget facts from rare to famous. Raises ConfigError."""
    every = {
        fact.id: fact for group in (facts.forget, facts.retain, facts.holdout) for fact in group
    }
    if ids is None:
        ordered = sorted(facts.forget, key=lambda fact: fact.score or 0)
        one_each = [*{fact.score or fact.id: fact for fact in ordered}.values()]
        last = min(len(one_each), 8) - 1
        return [one_each[at * (len(one_each) - 1) // max(1, last)] for at in range(last + 1)]
    names = [name.strip() for name in ids.split(",")]
    if missing := [name for name in names if name not in every]:
        message = f"No fact has the id {missing[0]!r}."
        raise ConfigError(message, "`python -m adapop beta FACTS --json` lists the ids.")
    return [every[name] for name in names]


def export(options: argparse.Namespace) -> None:
    """`export`: the adapter or merged model with a model card; prints how to use it."""
    from adapop.report.export import export as written

    run = find_run(options.run)
    result = written(
        run,
        options.out,
        options.merged,
        options.push,
        Progress(printing.overwritten),
        dtype=options.dtype or "",
        measure=not options.unmeasured,
    )
    printing.overwritten("")
    if options.json:
        counts = {"asked": result.asked, "differing": result.differing}
        printing.say_json({**asdict(result), "folder": str(result.folder), **counts})
        return
    kind = "the merged model" if options.merged else "the adapter"
    printing.say(f"{result.folder}: {kind}; its README.md says how to load it")
    for remark in result.remarks:
        printing.say(remark)
    for name, sha256 in (result.delivered.sha256 if result.delivered else {}).items():
        printing.say(f"{name}: SHA-256 {sha256}")
    command = gguf(run.config, str(result.folder), options.merged)
    printing.say(f"to convert it for llama.cpp, run this in llama.cpp's folder: {command}")
    if result.address:
        printing.say(f"sent to {result.address}, a private repository")
