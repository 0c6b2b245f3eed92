"""Runs the six steps of the demonstration: four ideas of the library, then the command line twice."""

import sys
from pathlib import Path

from deciban.demo import commands, examples


def main(folder: str = "demo") -> None:
    """Run all steps; the commands write their files to `folder`."""
    files = examples.read_files()
    clf = examples.show_evidence(files)
    print()
    examples.show_structures()
    print()
    examples.show_unlearning(clf, files)
    print()
    examples.show_mixture()
    print(flush=True)
    commands.show_commands(Path(folder))
    print(
        f"""
look: {(Path(folder) / "report.html").resolve().as_uri()}    the model as a page: figures, sliders, evidence

next: deciban fit yours.csv --label COLUMN       your own table
      deciban fit FOLDER                         your own texts, one sub-folder per class
      cd {folder} && deciban fit tumours.csv --label diagnosis    the commands of README.md
      cd {folder} && deciban inspect demo.deciban                 every parameter, with its interval
      deciban --help, README.md, docs/howto/command-line.md, docs/worked-examples.md"""
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
