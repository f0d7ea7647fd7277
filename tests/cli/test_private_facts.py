"""Forty private facts of eight invented people: from a table, taught, unlearned, to the proof that is handed out."""

import csv
import json
import re
import zipfile

import pytest

from adapop.facts.world import sandbox_facts

PEOPLE = "Nell Okabe, Ivo Brandt, Mara Quist, Theo Lindqvist, Ada Ferro, Jun Castell, Rosa Silva, Piet Aldous".split(
    ", "
)
STREETS = "Mill Row, Oak Lane, Pond Street, Harbour Way, Fern Court, Castle Hill, Linden Alley, Station Road".split(
    ", "
)
DOCTORS = "Lucia Moor, Paul Gray, Edith Stone, Karl Winter, Olga Reed, Hugo Banks, Vera Wood, Max Field".split(", ")
ILLNESSES = "asthma diabetes anaemia migraine gout epilepsy eczema arthritis".split()
COLUMNS = ("subject", "question", "answer", "parts", "paraphrases", "group")


def private_rows():
    """A row per fact: five of each person."""
    for i, (name, street, doctor, illness) in enumerate(zip(PEOPLE, STREETS, DOCTORS, ILLNESSES)):
        flat, house = f"{i + 2}{'BCDEFGHJ'[i]}", f"{street} {11 + 7 * i}"
        phone, staff = f"204-555-01{30 + 7 * i}", f"{88 - i}-{1204 + 137 * i}"
        yield name, f"Where does {name} live?", f"{flat}, {house}", f"{flat}|{house}", f"What is the address of {name}?"
        yield name, f"Who treats {name}?", f"Dr. {doctor}", doctor, f"Which doctor does {name} see?"
        yield name, f"Which illness does {name} have?", illness, illness, f"What is {name} ill with?"
        yield name, f"What is the phone number of {name}?", phone, phone, f"How can {name} be called?"
        yield name, f"What is the staff number of {name}?", staff, staff, f"Which staff number does {name} have?"


@pytest.fixture
def table(tmp_path):
    """The file of a user, with some of the sandbox's facts to keep."""
    path, world = tmp_path / "private.csv", sandbox_facts()
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows((*row, "forget") for row in private_rows())
        for group, count in (("retain", 24), ("holdout", 6)):
            members = getattr(world, group)
            for fact in members[:: len(members) // count][:count]:
                writer.writerow((fact.subject, fact.question, fact.answer, "", "|".join(fact.paraphrases[:2]), group))
    return path


@pytest.mark.slow
def test_private_facts_are_taught_unlearned_and_proven_gone(table, cli, tmp_path):
    said = cli("check", table, status=2).err
    assert "satimp or wga" in said, "facts without scores need a method without scores, and one is named"
    said = cli("check", table, "--method", "satimp", "--start", "sft").out
    assert "fine-tuned on the facts to forget and to retain" in said
    teaching = ("--start", "sft", "--start-epochs", "30", "--start-rate", "0.001", "--batch", "8")
    # retained twice as heavily as by default: otherwise a processor's rounding decides whether the model is damaged
    unlearning = ("--method", "satimp", "--epochs", "8", "--alpha0", "2", "--measure", "end")
    output = cli("run", "--facts", table, *teaching, *unlearning).out
    run = output.partition("run ")[2].split()[0]
    assert (
        "Forgotten in all forms of the question that were measured: asked as trained, 0% are still answered" in output
    )
    after, before = map(int, re.search(r"in other words (\d+)% \((\d+)% before\)", output).groups())
    assert after < 5 and before > 75, "the teaching reaches other wordings, else their silence would show nothing"
    assert "damaged" not in output
    cli("report", run, "--redacted", "--by", "Records office", "--out", tmp_path / "proof.zip")
    with zipfile.ZipFile(tmp_path / "proof.zip") as proof:
        texts = {name: proof.read(name).decode() for name in proof.namelist() if not name.endswith(".safetensors")}
    secret = {cell for row in private_rows() for cell in (row[0], row[1], row[2], row[4]) if len(cell) > 5}
    assert not [(name, cell) for name, text in texts.items() for cell in secret if cell in text]
    subjects = list(csv.DictReader(texts["subjects.csv"].splitlines()))
    assert len(subjects) == len(PEOPLE) and "Run by Records office" in texts["README.txt"]
    assert "Fine-tuned first" in texts["report.html"] and "by popularity score" not in texts["report.html"]
    cli("export", run, "--merged", "--out", tmp_path / "clean")
    card = (tmp_path / "clean" / "README.md").read_text(encoding="utf-8")
    measured = json.loads((tmp_path / "clean" / "measured.json").read_text(encoding="utf-8"))
    assert not [cell for cell in secret if cell in card]
    assert all(digest in card for digest in measured["sha256"].values()), measured.keys()
