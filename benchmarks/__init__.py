"""Speed and memory of the package and of its peers, measured side by side in one run.

Importing this package pins every numerical library to one thread, before any of them is loaded.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"
