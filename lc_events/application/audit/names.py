"""Names of jobs as users write and read them, and the streams that they stand for."""

from __future__ import annotations

from lc_events.errors import UsageError
from lc_events.messages.names import DATASET_KIND, JOB_KIND, is_namespace, is_resource_name, parts_of, stream_id

__all__ = ["job_stream", "short_name"]


def job_stream(job: str) -> str:
    """The stream of `NAMESPACE/NAME` or `NAME` (namespace `default`); `NAMESPACE/dataset/NAME` is taken as it is.

    Raises UsageError for anything else.
    """
    namespace, kind, name = "default", JOB_KIND, job
    if job.count("/") == 1:
        namespace, name = job.split("/")
    elif job.count("/") == 2:
        namespace, kind, name = job.split("/")
    if not is_namespace(namespace) or kind not in (JOB_KIND, DATASET_KIND) or not is_resource_name(name):
        raise UsageError(f"{job!r} is not the name of a job: give NAMESPACE/NAME, or NAME in the namespace default")
    return stream_id(namespace, kind, name)


def short_name(stream: str) -> str:
    """`NAMESPACE/NAME` of a job's stream; others are named in full."""
    namespace, kind, name = parts_of(stream)
    return f"{namespace}/{name}" if kind == JOB_KIND else stream
