"""AdaPop Explorer: unlearning that weighs each fact by its popularity.

Read in this order; fact -> score -> beta -> token weight -> loss -> drift -> lambda -> probe, an arrow a module:

    errors       what can go wrong, in words   limits, admission  what a public Space allows itself, and each visitor
    facts        Fact, FactSet, tiers          tables, parquet, cells, factfile   a user's file as facts
    web, cache, progress   polite HTTP         hub, benchmarks    DUET and RWKU over HTTP
    catalog      the sets one can pick         retain             what must survive
    popularity   scores: proxies, agreement, and wrong scores as controls
    beta         score -> exponent             calibration        do anchors and scores suit each other
    controller   retain loss -> drift -> lambda -> alpha
    methods      the sixteen, in words         config, preflight  what a run is, and what to know before it
    events       what a run says               alternates, words  wrong answers, and words that carry a fact
    chat         a chat template around a question, in which no user writes a control token
    tokens       facts -> answer tokens        model, scored      base + LoRA: score, generate, adapter off
    models       models by name                loading            a folder or the Hub -> model and tokenizer
    objectives   one file a method             forgetting         what a method's batches bring
    memory, footprint, fitting                 rows a pass can take; what memory a run will need
    gradient     a step's, in passes of any size
    trainer      Algorithm 1 as a generator    ranks, sharding    a step over several processes; a base split among them
    metrics      the six metrics               probes             prompts, attacks, battery, verdict, matrix, recovery
    disk, lock   writing that a kill cannot halve; one process a run
    runs         a run's folder                checkpoints        what an epoch leaves to go on from
    context      do the facts fit the model    execution          prepare, train, measure, keep, resume
    remarks      what a finished run should make one doubt
    worker, line one accelerator, one queue    slices, pace, lending   what it does there, how long, and on loan
    sets, links  a user's sets; links to runs  janitor            what is too old goes
    figures      numbers -> plotly
    published    what the paper reports        replication        a run on its facts and models beside that
    recorded     what we measured ourselves, several seeds of each, to lay over a race
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
