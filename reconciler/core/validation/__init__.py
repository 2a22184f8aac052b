"""Whether an API server takes an object: its kind, its fields and their types (docs/decisions/0018).

Called by `safety` on templates and requests when they are read, and on what they render to before it is committed. No
cluster is asked: the schemas are those of Kubernetes, and of the CustomResourceDefinitions of the fleet repository.
"""
