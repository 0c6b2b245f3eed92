"""Run the six steps of the demonstration, each with a sentence of meaning."""

import sys
from pathlib import Path

from deciban.demo import commands
from deciban.demo import examples as dice
from deciban.demo import examples as gaussians
from deciban.demo import examples as languages


def main(folder: str = "demo") -> None:
    """C or Python, sixteen Gaussians, taking it back, dice nobody labelled; then the command line."""
    files = languages.read_files()
    clf = languages.show_evidence(files)
    print()
    gaussians.show_table()
    print()
    languages.show_taking_back(clf, files)
    print()
    dice.show_mixture()
    print(flush=True)
    commands.show_commands(Path(folder))
    print(
        f"""
next: deciban fit yours.csv --label COLUMN       your own table
      deciban fit FOLDER                         your own texts, one sub-folder a class
      cd {folder} && deciban inspect tumours.deciban    every parameter, with its interval
      deciban --help, README.md, docs/howto/command-line.md, docs/worked-examples.md"""
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
