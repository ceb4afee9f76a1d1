"""Messages for limits of the operating system."""

import errno

_LIMITS = {
    errno.EFBIG: ("a file would be larger than this process may write", "raise the limit with ulimit -f"),
    errno.EMFILE: ("too many files are open", "raise the limit with ulimit -n"),
    errno.ENFILE: ("too many files are open on this machine", "close other programs, or raise fs.file-max"),
    errno.ENOMEM: ("out of memory", ""),
    errno.EAGAIN: ("there are too many processes or threads", "raise the limit with ulimit -u"),
}


def system_limit(error: BaseException) -> tuple[str, str] | None:
    """Return the error message and remedy for a limit of the system; None for other exceptions."""
    if isinstance(error, MemoryError):
        return _LIMITS[errno.ENOMEM]
    if isinstance(error, OSError | ImportError) and "failed to map segment" in str(error):
        return "no memory for a library", "raise the limit with ulimit -v"  # the dynamic linker's, without errno
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return _LIMITS[errno.EAGAIN]
    return _LIMITS.get(error.errno or 0) if isinstance(error, OSError) else None


def is_disk_full(error: BaseException) -> bool:
    """Whether an exception reports that no space (or quota) is left."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
