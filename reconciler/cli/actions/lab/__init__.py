"""The actions of `lab`: run and sweep, compare, replay."""
