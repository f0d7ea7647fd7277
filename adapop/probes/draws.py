"""Samples of one question from several models, and leak@k: how often k samples leak a fact."""

from collections.abc import Sequence

import torch

from adapop.facts.fact import FactSet
from adapop.model.adapted import AdaptedModel
from adapop.probes.ask import Judged, check_room, judged_by
from adapop.probes.inspection import Drawing, Question, Samples
from adapop.probes.judge import gives_away
from adapop.probes.recall import part_said
from adapop.probes.tokenwise import Column, continued, conversations, decoded, prompt_of


def samples(
    columns: Sequence[Column], question: Question, drawing: Drawing, facts: FactSet | None = None
) -> tuple[Samples, ...]:
    """Each column's greedy reply, and samples of it, all drawn at once with the same seed. torch's
    random state stays as it is. facts: as in `ask`. Raises as `tokenwise.inspect`."""
    judged = judged_by(question.prompt, question.gold, facts)
    drawn = []
    for column in columns:
        with column.speaking() as model:
            greedy, *texts = _texts(model, question, drawing)
            away = tuple(says(judged, text) for text in (greedy, *texts)) if question.gold else ()
            first = away[0] if away else None
            drawn.append(Samples(column.name, greedy, first, tuple(texts), away[1:]))
    return tuple(drawn)


@torch.no_grad()
def _texts(model: AdaptedModel, question: Question, drawing: Drawing) -> list[str]:
    """The greedy reply, and then the samples."""
    model.network.eval()
    (earlier,) = conversations(model, [question.earlier], drawing.most)
    read, begun = prompt_of(model, question, earlier)
    check_room(model, question.prompt, len(read) + len(begun), drawing.most)
    ids = (*read, *begun)
    with torch.random.fork_rng(devices=model.gpus):
        torch.manual_seed(drawing.seed)
        options = {"temperature": drawing.temperature, "top_p": drawing.top_p, "top_k": 0}
        options["num_return_sequences"] = drawing.count
        drawn = continued(model, ids, drawing.most, **options)
    written = [*continued(model, ids, drawing.most), *drawn]
    return [decoded(model, (*begun, *one)).strip() for one in written]


def says(judged: Judged, text: str) -> bool:
    """Whether a reply gives the right answer away, as a verdict counts it."""
    if parts := judged.known.judged_parts:
        return part_said(parts, text) == 1.0
    return gives_away(judged.about.question, judged.known.answers, text)
