"""Lets many programs start, follow, stop and question runs at once, and counts what is lost, mixed up or leaking.

The public app runs as `python app.py` starts it, the clients as threads of this process, on the same cores. Each
client has an address of its own (X-Forwarded-For), facts of its own, and asks nothing whose answer it cannot check.
"""

import os
import tempfile
import time
from pathlib import Path
from statistics import fmean, median, quantiles

from calling import megabytes, run_as_command
from clients import ENDED, Tally, at_work

from adapop.limits import QUEUE
from serving import served

SAMPLE_SECONDS = 1.0


def main(clients: int, minutes: float) -> int:
    """Prints what was answered, how late, what was refused, and the app's memory over time. Returns 1 if an answer was
    lost or wrong. minutes: until each client stops its run."""
    tally, memory = Tally(), []
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), ADAPOP_PUBLIC="1") as app:
        crowd, threads = at_work(app.address, clients, minutes, tally)
        while any(thread.is_alive() for thread in threads):
            memory.append(megabytes(app.process))
            time.sleep(SAMPLE_SECONDS)
        if memory[0] and not memory[-1]:
            print("the app is gone; its last words:", *app.output, sep="\n")
    print(f"{clients} clients for {minutes:g} min, {os.cpu_count()} cores for all, load {os.getloadavg()[0]:.1f}")
    print(f"{'answers':<12}{'count':>8}{'median':>10}{'95 %':>10}")
    for name, taken in sorted(tally.seconds.items()):
        late = quantiles(taken, n=20)[18] if len(taken) > 1 else taken[0]
        print(f"{name:<12}{len(taken):>8,}{median(taken):>8.2f} s{late:>8.2f} s")
    ended = sum(client.state in ENDED for client in crowd)
    refused = ", ".join(f"{count:,} by {name}" for name, count in sorted(tally.refused.items())) or "none"
    print(f"lost         {len(tally.lost):>7,} {'; '.join(sorted(set(tally.lost)))}".rstrip())
    print(f"wrong        {len(tally.wrong):>7,} {'; '.join(sorted(set(tally.wrong)))}".rstrip())
    print(f"refused      {sum(tally.refused.values()):>7,} ({refused})")
    print(f"runs         {tally.ended:>7,} came to their end, each with every epoch")
    print(f"last runs    {ended:>7,} of {sum(bool(one.state) for one in crowd):,} ended when asked to stop")
    print(f"line         {tally.longest:>7,} runs at the most, {QUEUE.public:,} allowed")
    print(f"known answer {tally.right:>7,} of {tally.asked:,} questions answered right by the original model")
    size = max(1, len(memory) // 4)  # in quarters of the time, so that growth can be told from a warm start
    parts = ", ".join(f"{fmean(memory[at : at + size]):,.0f}" for at in range(0, min(4 * size, len(memory)), size))
    print(f"memory       {max(memory):>7,.0f} MB at the most; by quarters of the time: {parts} MB")
    return int(bool(tally.lost or tally.wrong))


if __name__ == "__main__":
    run_as_command(main, __doc__, clients=(50, "how many at once"), minutes=(5.0, "for how long"))
