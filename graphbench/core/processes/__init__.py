"""Work that runs in other processes: one kind of pool for generation, labels and tuning.

:mod:`.pool` says what a pool is, :mod:`.local` runs jobs in processes of this machine, :mod:`.dask_pool` on a Dask
cluster, which :mod:`.cluster` connects to and checks; :mod:`.worker` is what runs in a local process.
"""
