"""Stories on two clusters with the controllers of a GPU platform."""
