"""Files of samples and of labels: folders, manifests, shards, hashes, and the files of an open split."""
