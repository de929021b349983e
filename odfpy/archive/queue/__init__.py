"""A queue of files to be archived: a folder that survives restarts.

    QUEUE/ID.tar              a bundle that waits; also one of datalake, under any name that begins with no dot
    QUEUE/.tmp-...            a bundle that is being written
    QUEUE/.work/TOKEN/        the place of an uploader, which holds its lock as long as it lives
    QUEUE/.work/TOKEN/claimed bundles that it has taken
    QUEUE/poison/NAME         a bundle that was refused; why is in NAME.reason.json

A bundle is deleted when the archive has its file, and not before. An uploader that is killed leaves its place without a
lock, and the next one puts what is there back into the queue. What is pushed twice is in the archive once.
"""
