"""What the bootstrap uses: `post` for a worker, `Stream` for a launcher. It imports little: process 1 waits for it."""

from mpiboot.checkin.messages import Attempt, Report, WorkerState
from mpiboot.checkin.post import Posted, post, post_attempt
from mpiboot.checkin.stream import Snapshot, Stream

__all__ = ["Attempt", "Posted", "Report", "Snapshot", "Stream", "WorkerState", "post", "post_attempt"]
