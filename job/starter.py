"""A first manifest to copy and to change: a v2beta1 MPIJob with comments, for this machine and for a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mpiboot.job.job_annotations import LAUNCH
from mpiboot.job.model import OUR_USERS_SSH, ROOTS_SSH
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

# It is in our images: a job that shows whether everything works, before there is a program.
STARTER_COMMAND = ("python", "-m", "mpiboot.demo")

TEXT = """\
# A job for MPI: one launcher, which runs mpirun, and workers, which hold the ranks.
#   mpiboot lint -f job.yaml      finds mistakes
#   mpiboot run -f job.yaml       runs it on this machine
#   kubectl apply -f job.yaml     runs it on a cluster, where the operator is installed
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: {name}{annotations}
spec:
  slotsPerWorker: {slots}                # ranks that each worker holds
  {runtime}
  runPolicy:
    cleanPodPolicy: Running        # when the launcher has ended, remove what still runs; its log stays
    backoffLimit: 0                # how often a launcher that failed is started again
    # activeDeadlineSeconds: 3600  # end the job after an hour
    # ttlSecondsAfterFinished: 600 # remove the job ten minutes after its end
  sshAuthMountPath: {ssh} # .ssh of the user that the image runs as
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
            - name: launcher
              image: {image}
              imagePullPolicy: {policy}
              # Numbers in a command need quotes. mpiboot tells mpirun the hosts: leave out -H and --hostfile.
              command: {command}
    Worker:
      replicas: {workers}
      template:
        spec:
          containers:
            - name: worker
              image: {image} # the same as the launcher's
              imagePullPolicy: {policy}
              # Without a command the worker serves SSH, and the launcher starts ranks there.
              resources:
                limits:
                  cpu: 500m
                  memory: 512Mi
                  # nvidia.com/gpu: 1
"""


DEFAULT_RUNTIME = "# mpiImplementation: MPICH     # or Intel; without this line: OpenMPI"

# The operator knows images that carry mpiboot by their names. A job with another name says so itself.
IN_PLACE = """
  annotations:
    {key}: in-place   # the image carries mpiboot, and its name does not show it"""


def manifest(
    name: str, image: str, command: Sequence[str], *, workers: int = 2, slots: int = 2, runtime: str = "",
    loaded: bool = False, own: bool | None = None,
) -> str:  # fmt: skip
    """The text. `loaded`: the image is in the nodes, and no registry has it. `own`: it carries mpiboot, by a look."""
    known = Settings().is_own(image)
    carries = known if own is None else own
    words = ["mpirun", "-n", str(workers * slots), *command]
    return TEXT.format(
        name=name,
        annotations=IN_PLACE.format(key=LAUNCH) if carries and not known else "",
        image=image,
        slots=slots,
        workers=workers,
        command=json.dumps(words),
        policy="Never" if loaded else "IfNotPresent",
        ssh=OUR_USERS_SSH if carries else ROOTS_SSH,
        runtime=f"mpiImplementation: {runtime}" if runtime else DEFAULT_RUNTIME,
    )
