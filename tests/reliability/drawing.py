"""Times the field in a real browser: milliseconds of one drawing, and how many a second one sees while it plays.

    python tests/reliability/drawing.py [--dots 256 20000]

The page's own script draws made-up facts on a page of its own; nothing else runs in it.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from playwright.sync_api import Page, sync_playwright

from adapop.ui.parts.field import FIELD, script
from browsing import CHROMIUM

DRAWINGS, SECONDS, MOMENTS = 200, 3, 11
TIME = f"""([facts, motion]) => new Promise((done) => {{
  {script(*FIELD)}
  document.body.innerHTML = '<div style="width: 1080px"></div>';
  const host = document.body.firstChild, field = makeField(host, facts, motion, {{ name: "timed" }});
  const end = motion.epoch[motion.epoch.length - 1];
  const began = performance.now();
  for (let i = 0; i < {DRAWINGS}; i++) {{
    field.show((end * i) / {DRAWINGS});
    host.querySelector("canvas").getContext("2d").getImageData(0, 0, 1, 1); // what was only put off is drawn now
  }}
  const milliseconds = (performance.now() - began) / {DRAWINGS};
  let frames = 0;
  const first = performance.now();
  const step = (now) => {{
    if (now - first > {1000 * SECONDS}) return done([milliseconds, frames / {SECONDS}]);
    frames++;
    field.show((end * ((now - first) % 1000)) / 1000);
    requestAnimationFrame(step);
  }};
  requestAnimationFrame(step);
}})"""


def made_up(dots: int) -> list[dict]:
    """Facts and how they move, as the page sends them."""
    words = {name: ["word"] * dots for name in ("title", "question", "answer")}
    scores = [70 * 50 ** (fact / dots) for fact in range(dots)]
    tiers = [("rare", "middle", "popular")[3 * fact // dots] for fact in range(dots)]
    p = [
        [(1000 * (fact + 1) * (MOMENTS - moment)) // (dots * MOMENTS) for fact in range(dots)]
        for moment in range(MOMENTS)
    ]
    nothing = [None] * MOMENTS
    motion = {"epoch": [moment / 2 for moment in range(MOMENTS)], "p": p, "reworded": nothing, "said": nothing}
    return [words | {"score": scores, "tier": tiers}, motion]


def timed(page: Page, dots: int) -> tuple[float, float]:
    """(milliseconds a drawing, drawings a second while it plays)."""
    page.goto("about:blank")
    return tuple(page.evaluate(TIME, json.loads(json.dumps(made_up(dots)))))


def main() -> None:
    """Prints a line a number of dots."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--dots", type=int, nargs="+", default=[256, 20_000])
    wanted = asked.parse_args().dots
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]).new_page()
        for dots in wanted:
            milliseconds, frames = timed(page, dots)
            print(f"{dots:,} dots: {milliseconds:.1f} ms a drawing, {frames:.0f} a second while it plays")


if __name__ == "__main__":
    main()
