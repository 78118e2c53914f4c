"""A Kubernetes for the tests: `.venv/bin/python tools/cluster COMMAND`.

  up           start the whole node (8 s), building what is missing first (11 minutes, once a machine)
  down         end it and remove everything that it left on this machine
  api-up       start etcd and the API server alone (3 s; 5 minutes to build); api-down ends them
  build SIZE   build or install what is needed and start nothing: api, node, bench, helm or schedulers
  tidy         remove what builds left behind, up to 8 GB; `up` does this, too
  status       print what runs
  kubeconfig   print the path of the kubeconfig: export KUBECONFIG=$(... kubeconfig)
  load IMAGE.. copy images from the Docker engine to the node

Exit codes: 0 done, 1 it failed (the reason is printed), 2 wrong usage, 3 nothing runs (status, kubeconfig).
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cluster.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], str(__doc__)))
