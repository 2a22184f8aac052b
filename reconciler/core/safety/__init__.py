"""The objects and commands that may be deployed: kinds, namespaces, Secrets, and the rules of LeaderWorkerSets.

Called by `fleet` when a file is read and by `commits` before an object is written. No command of a template is ever
run here: it becomes an object or a Job, or it is refused.
"""
