"""Orders of people and schedules on their way to the loop, and their results on the way back."""
