"""A queue of files to archive: a folder that survives restarts.

    QUEUE/ID.tar              a waiting bundle; also one of datalake, under any name that does not begin with a dot
    QUEUE/.tmp-...            a bundle that is being written
    QUEUE/.work/TOKEN/        the folder of an uploader, which holds its lock while it lives
    QUEUE/.work/TOKEN/claimed bundles claimed by the uploader
    QUEUE/poison/NAME         a rejected bundle; NAME.reason.json has the reason

A bundle is deleted only after the archive has its file. If an uploader is killed, its lock is released, and the next
uploader puts its bundles back into the queue. A file that is pushed twice is in the archive once.
"""
