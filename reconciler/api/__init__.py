"""The HTTP API: placements, GPRs, templates, observations, webhooks of git hosts, and health.

Called by `app`, which serves it in a thread beside the loop. Nothing in here decides, reads git or writes it. A read
answers from the newest snapshot; a write waits in the order queue; an observation waits for the next pass.
"""
