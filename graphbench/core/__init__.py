"""What every other package builds on: errors, files, processes, progress. It knows nothing of datasets."""
