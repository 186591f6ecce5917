"""``python -m graphbench`` runs the command line."""

from graphbench.cli import main

if __name__ == "__main__":
    main()
