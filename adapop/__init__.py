"""AdaPop Explorer: unlearning that weighs each fact by its popularity.

Read in this order; fact -> score -> beta -> token weight -> loss -> drift -> lambda -> probe, an arrow a module:

    errors       what can go wrong, in words   limits             what a public Space allows itself
    facts        Fact, FactSet, tiers          tables, cells, factfile   a user's file as facts
    web, cache, progress   polite HTTP         hub, benchmarks    DUET and RWKU over HTTP
    catalog      the sets one can pick         retain             what must survive
    popularity   scores: proxies, agreement, and wrong scores as controls
    beta         score -> exponent             calibration        do anchors and scores suit each other
    controller   retain loss -> drift -> lambda -> alpha
    methods      the sixteen, in words         config             what a run is
    events       what a run says               alternates, words  wrong answers, and words that carry a fact
    tokens       facts -> answer tokens        model              base + LoRA: score, generate, adapter off
    objectives   one file a method             forgetting         what a method's batches bring
    trainer      Algorithm 1 as a generator of events
    metrics      the six metrics               probes             prompts, attacks, battery, verdict, matrix, recovery
    runs         a run's folder                execution          prepare, train, measure, keep, resume
    worker       one accelerator, one queue    slices, pace       what it does there, and how long that takes
    sets         a user's sets on disk         janitor            what is too old goes
    figures      numbers -> plotly
    published    what the paper reports, to stand beside ours
    report       runs as a page and as an archive to keep (spreadsheet: CSV that runs no formula)
    sandbox      the model we ship             bench              experiments, speed
    cli, console the command line              ui                 the Gradio app

Symbols, in the paper's letters and ours:

    s  score        beta(s)  beta            p  prob           l  nll (nats)      w  weight = sg[p^beta]
    a0 alpha0       lambda   lam             eps tolerance     eta dual_step      xi floor
    R_k retain_loss R_ref    reference       delta drift       N  answer tokens   B  rows
"""

import os

# Torch's OpenMP threads wait by spinning, and two processes that spin on the same cores slow each other down tenfold.
# A short spin costs one process nothing (measured on the sandbox run). Must be set before torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
