"""What a pass saw and decided, as a document that others can read, and back; and the ledger, for the next start.

`pass_record` holds what is recorded of a pass, `documents` turns it into JSON and into the difference from the pass
before (a JSON Patch, RFC 6902), `json_patch` applies one. Called by the adapter that writes recordings, and by the lab,
which reads them. Credentials in texts are left out, as from commits. `ledger_cache` holds the records of the output
branch, as they are, for `daemon.branch`. Nothing here decides, and no file is opened.
"""
