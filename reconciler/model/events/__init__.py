"""What happens, and who is told of it: events of passes, notices of commits, Notifications."""
