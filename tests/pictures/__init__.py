"""The pictures of docs/pictures: the demo as it moves, and answers of commands. `make pictures` draws them anew."""
