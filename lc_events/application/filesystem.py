"""Where a store must not lie: SQLite's write-ahead log needs shared memory, which no network file system has."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["network_file_system"]

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|ncpfs|afs|ceph|glusterfs|lustre|9p|pvfs2|ocfs2|gfs2?|beegfs"
    r"|fuse\.(?:sshfs|glusterfs|s3fs|rclone|ceph|gcsfuse|davfs2?|cifs|nfs|mount-s3|goofys|juicefs|seaweedfs)"
)


def network_file_system(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """The kind of network file system that `path` lies on (proc(5), mountinfo); None for any other."""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    real = path.resolve()
    depth, kind = 0, ""
    for line in lines:
        fields = line.split(" ")
        # Blanks and the like stand there as \040.
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4]))
        # Of several mounts on one point, the last one is on top.
        if (point == real or point in real.parents) and len(point.parts) >= depth:
            depth, kind = len(point.parts), fields[fields.index("-") + 1]
    return kind if _NETWORK.fullmatch(kind) else None
