"""Pools of worker processes, used by generation, labelling and tuning.

:mod:`.pool` defines the interface, :mod:`.local` runs jobs in processes of this machine, :mod:`.dask_pool` on a Dask
cluster, which :mod:`.cluster` connects to and checks; :mod:`.worker` runs in the local processes.
:mod:`.pickling` makes the bytes of jobs.
"""
