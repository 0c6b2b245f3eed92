"""Run the four steps of the demonstration, each with a sentence of meaning."""

from deciban.demo import dice, gaussians, languages


def main() -> None:
    """C or Python, sixteen Gaussians, taking it back, and dice nobody labelled."""
    files = languages.read_files()
    clf = languages.show_evidence(files)
    print()
    gaussians.show_table()
    print()
    languages.show_taking_back(clf, files)
    print()
    dice.show_mixture()
    print("\nnext: README.md, docs/worked-examples.md, examples/mnist_table.py")


if __name__ == "__main__":
    main()
