"""What the webhooks and the CEL rules of controllers refuse of a new object, beyond the schema of its kind.

Called by `safety` on templates when they are read and on what they render to. Each project is one module with a table
of its rules, each with the file that it was read from; `table` has the projects and applies them. What a webhook
refuses of a change is in `validation.immutable_rules`.
"""
