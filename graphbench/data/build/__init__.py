"""Generation of splits and of labels, by any number of workers, into finished files."""
