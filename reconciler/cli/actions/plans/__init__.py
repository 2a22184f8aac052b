"""Plans on the screen and for other tools: tables, patches, Markdown and JSON. `plan` and all dry runs print them."""
